package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/store"
)

// maxSpellings bounds the names of which the spelling in UTF-8 is remembered.
const maxSpellings = 4096

// spellings remembers names in other character sets.
type spellings struct {
	mu    sync.RWMutex
	texts map[spelling]string // guarded by mu
}

type spelling struct{ charset, name string }

func (m *spellings) get(charset string, name []byte) (string, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	text, ok := m.texts[spelling{charset, string(name)}]
	return text, ok
}

func (m *spellings) put(charset string, name []byte, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts == nil || len(m.texts) >= maxSpellings {
		m.texts = make(map[spelling]string)
	}
	m.texts[spelling{charset, string(name)}] = text
}

// InUTF8 returns a name in UTF-8 that is in one of MySQL's character sets. The sequence
// server's own tables decide, and are asked once for each name, for at most the allocate
// timeout. A name that cannot be converted wraps ErrNoText, as does one whose charset is
// no plain word; other errors are those of Exists.
func (s *Sequences) InUTF8(ctx context.Context, charset string, name []byte) ([]byte, error) {
	if text, ok := s.spellings.get(charset, name); ok {
		return []byte(text), nil
	}
	if len(name) > 4*maxNameBytes {
		return nil, fmt.Errorf("a name of %d bytes %w", len(name), ErrNoText)
	}
	if !s.begin() {
		return nil, ErrClosed
	}
	defer s.tasks.Done()
	ctx, stop := context.WithTimeoutCause(ctx, s.patience(ctx), await.ErrPatience)
	defer stop()
	begin := time.Now()
	text, err := s.members.First().InUTF8(ctx, charset, name)
	switch {
	case errors.Is(err, ErrNoText), errors.Is(err, ErrUnfit):
		return nil, err
	case err != nil:
		return nil, &UnavailableError{Sequence: strings.ToValidUTF8(string(name), "?"), Server: s.serverName(), Waited: time.Since(begin), Err: err}
	}
	s.spellings.put(charset, name, text)
	return []byte(text), nil
}

// ErrNoText is a name whose bytes are no text in the character set that they are in, or
// a text that UTF-8 has not.
var ErrNoText = store.ErrNoText
