package logs

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"seqproxy/internal/logfield"
)

// limits say how many lines are written in a window of time. Further ones are counted, and the
// number is logged at the end of the window.
type limits struct {
	window time.Duration
	equal  int // lines of one event about one subject
	event  int // lines of one event
}

// usual lets a trouble be seen and its course, but not fill the disk: 100 events a second
// at the very most that no error is, if all there are happen all the time.
var usual = limits{window: 10 * time.Second, equal: 10, event: 100}

// errorShare is how many times as many lines of level error are written.
const errorShare = 10

// maxLimited bounds how many events are counted apart. There are fewer in the source.
const maxLimited = 500

// subjects are the fields that say what a line is about. Two lines of one event are equal
// if these are, whatever else is in them: the client, the words of an error, the time.
var subjects = []string{
	logfield.NameShard, logfield.NameNode, logfield.NameSequence, logfield.NameUser, logfield.NameKind, logfield.NameCode,
	logfield.NameStatement, "server", "table",
}

// limiter leaves lines out when there are too many alike. Lines of level debug, and those of the
// event "audit" that say what was done, are never left out.
type limiter struct {
	limits
	seed  maphash.Seed
	write func(zapcore.Entry, []zapcore.Field) // of the line that tells how many

	mu     sync.Mutex
	until  time.Time // the end of the window
	events map[limitedEvent]*limitedLines
	timer  *time.Timer // runs at the end of a window in which lines were left out
	closed bool
}

type limitedEvent struct {
	level         zapcore.Level
	logger, event string
	user          string // of audit lines: what one is refused hides nothing of another
}

type limitedLines struct {
	written int
	equal   map[uint64]int // lines written, by the hash of what they are about
	left    uint64         // out
}

func newLimiter(l limits, write func(zapcore.Entry, []zapcore.Field)) *limiter {
	return &limiter{limits: l, seed: maphash.MakeSeed(), write: write, events: make(map[limitedEvent]*limitedLines)}
}

// admits says whether a line is written. about are the fields of its logger.
func (l *limiter) admits(e zapcore.Entry, about, fields []zapcore.Field) bool {
	key := limitedEvent{level: e.Level, logger: e.LoggerName, event: e.Message}
	if e.Message == logfield.EventAudit {
		if outcome := text(logfield.NameOutcome, fields); outcome == logfield.OutcomeDone || outcome == "" {
			return true
		}
		key.user = text(logfield.NameUser, about)
	}
	if e.Level < zapcore.InfoLevel {
		return true
	}
	subject := l.subject(about, fields)
	equal, all := l.equal, l.event
	if e.Level >= zapcore.ErrorLevel {
		equal, all = equal*errorShare, all*errorShare
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if !e.Time.Before(l.until) {
		l.flushLocked()
		l.until = e.Time.Add(l.window)
	}
	lines := l.events[key]
	if lines == nil {
		if len(l.events) >= maxLimited {
			key = limitedEvent{level: e.Level, event: "others"}
			lines = l.events[key]
		}
		if lines == nil {
			lines = &limitedLines{equal: make(map[uint64]int)}
			l.events[key] = lines
		}
	}
	if lines.written >= all || lines.equal[subject] >= equal {
		lines.left++
		if l.timer == nil && !l.closed {
			l.timer = time.AfterFunc(max(0, time.Until(l.until)), l.flush)
		}
		return false
	}
	lines.written++
	lines.equal[subject]++
	return true
}

// text is a field that is a string, or "".
func text(name string, fields []zapcore.Field) string {
	for i := range fields {
		if fields[i].Key == name {
			return fields[i].String
		}
	}
	return ""
}

// subject is what a line is about, as a hash.
func (l *limiter) subject(about, fields []zapcore.Field) uint64 {
	var h maphash.Hash
	h.SetSeed(l.seed)
	for _, fields := range [...][]zapcore.Field{about, fields} {
		for i := range fields {
			f := &fields[i]
			if !slices.Contains(subjects, f.Key) {
				continue
			}
			_, _ = h.WriteString(f.Key)
			_, _ = h.WriteString(f.String)
			for n := uint64(f.Integer); n > 0; n >>= 8 {
				_ = h.WriteByte(byte(n))
			}
			_ = h.WriteByte(0)
		}
	}
	return h.Sum64()
}

// flush ends the window and tells what was left out.
func (l *limiter) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushLocked()
	l.until = time.Time{}
}

func (l *limiter) flushLocked() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	for key, lines := range l.events {
		if lines.left > 0 {
			fields := []zapcore.Field{zap.String("of", key.event), zap.Uint64("lines", lines.left)}
			if key.user != "" {
				fields = append(fields, logfield.User(key.user))
			}
			l.write(zapcore.Entry{Level: key.level, Time: time.Now(), LoggerName: key.logger, Message: "lines left out"}, fields)
		}
	}
	clear(l.events)
}

// close tells what was left out, and starts no timer any more.
func (l *limiter) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.flushLocked()
}
