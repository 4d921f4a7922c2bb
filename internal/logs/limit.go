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

// limits bound the lines written in a window of time. Further lines are counted, and the count is
// logged at the end of the window.
type limits struct {
	window time.Duration
	equal  int // lines of one event with the same subject
	event  int // lines of one event
}

// usual shows a problem and its course, but does not fill the disk. Except for errors, at most 100
// lines a second are written, if all events that exist happen all the time.
var usual = limits{window: 10 * time.Second, equal: 10, event: 100}

// errorShare is the factor for lines of level error.
const errorShare = 10

// maxLimited bounds the number of events that are counted separately. The source has fewer.
const maxLimited = 500

// subjects are the fields that say what a line is about. Two lines of an event are equal if these
// fields are, whatever the others contain: the client, the text of an error, the time.
var subjects = []string{
	logfield.NameShard, logfield.NameNode, logfield.NameSequence, logfield.NameUser, logfield.NameKind, logfield.NameCode,
	logfield.NameStatement, "server", "table",
}

// limiter leaves out lines if there are too many equal ones. It never leaves out lines of level
// debug, or lines of the event "audit" about a completed change.
type limiter struct {
	limits
	seed  maphash.Seed
	write func(zapcore.Entry, []zapcore.Field) // writes a line with the count

	mu     sync.Mutex
	until  time.Time // the end of the window
	events map[limitedEvent]*limitedLines
	timer  *time.Timer // ends a window in which lines were left out
	closed bool
}

type limitedEvent struct {
	level         zapcore.Level
	logger, event string
	user          string // for audit lines: refusals of one user hide nothing of another's
}

type limitedLines struct {
	written int
	equal   map[uint64]int // lines written, by hash of their subject
	omitted uint64         // lines left out
}

func newLimiter(l limits, write func(zapcore.Entry, []zapcore.Field)) *limiter {
	return &limiter{limits: l, seed: maphash.MakeSeed(), write: write, events: make(map[limitedEvent]*limitedLines)}
}

// admits reports whether to write a line. about are the fields of its logger.
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
		lines.omitted++
		if l.timer == nil && !l.closed {
			l.timer = time.AfterFunc(max(0, time.Until(l.until)), l.flush)
		}
		return false
	}
	lines.written++
	lines.equal[subject]++
	return true
}

// text returns a field of type string, or "".
func text(name string, fields []zapcore.Field) string {
	for i := range fields {
		if fields[i].Key == name {
			return fields[i].String
		}
	}
	return ""
}

// subject returns the hash of a line's subject.
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
			if text, ok := f.Interface.([]byte); ok { // zap.ByteString
				_, _ = h.Write(text)
			}
			for n := uint64(f.Integer); n > 0; n >>= 8 {
				_ = h.WriteByte(byte(n))
			}
			_ = h.WriteByte(0)
		}
	}
	return h.Sum64()
}

// flush ends the window and logs how many lines were left out.
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
		if lines.omitted > 0 {
			fields := []zapcore.Field{zap.String("of", key.event), zap.Uint64("lines", lines.omitted)}
			if key.user != "" {
				fields = append(fields, logfield.User(key.user))
			}
			l.write(zapcore.Entry{Level: key.level, Time: time.Now(), LoggerName: key.logger, Message: "lines left out"}, fields)
		}
	}
	clear(l.events)
}

// close logs how many lines were left out, and starts no further timer.
func (l *limiter) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.flushLocked()
}
