package sequence

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/await"
	"seqproxy/sequence/link"
)

// ErrNoText is a name whose bytes are no text in the character set that they are in, or
// a text that UTF-8 has not.
var ErrNoText = errors.New("is no text in its character set")

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

// InUTF8 returns a name in UTF-8 that is in one of MySQL's character sets, which must be
// a word that needs no quotes. The sequence server's own tables decide, and are asked once
// for each name, for at most the allocate timeout. A name that cannot be converted wraps
// ErrNoText; other errors are those of Known.
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
	text, err := s.servers.first().inUTF8(ctx, charset, name)
	switch {
	case errors.Is(err, ErrNoText), errors.Is(err, ErrUnfit):
		return nil, err
	case err != nil:
		return nil, &UnavailableError{Sequence: strings.ToValidUTF8(string(name), "?"), Server: s.serverName(), Waited: time.Since(begin), Err: err}
	}
	s.spellings.put(charset, name, text)
	return []byte(text), nil
}

// inUTF8 asks the server for a name in UTF-8.
func (st *store) inUTF8(ctx context.Context, charset string, name []byte) (string, error) {
	conn, err := st.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	var text sql.NullString
	err = conn.QueryRowContext(ctx, fmt.Sprintf("SELECT CONVERT(_%s X'%X' USING utf8mb4)", charset, name)).Scan(&text)
	switch {
	case link.HasCode(err, gomysql.ER_UNKNOWN_CHARACTER_SET, gomysql.ER_INVALID_CHARACTER_STRING, gomysql.ER_PARSE_ERROR, link.CannotConvert, link.CannotConvertMariaDB):
		return "", fmt.Errorf("%w: %w", ErrNoText, err)
	case err != nil:
		return "", fmt.Errorf("convert a name from %s: %w", charset, err)
	case !text.Valid, strings.Count(text.String, "?") > bytes.Count(name, []byte("?")):
		// what stands for an unknown character
		return "", ErrNoText
	}
	return text.String, nil
}
