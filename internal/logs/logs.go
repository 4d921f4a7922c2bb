// Package logs writes the log: one line for each event, as JSON or for people, to stderr or to a
// file that can be opened again after it was moved away. Lines are not buffered. Of many similar
// lines most are only counted. A log that cannot be written stops nothing: lines are dropped, and
// their number is logged when it works again.
package logs

import (
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"seqproxy/internal/logfield"
)

// Options say what is logged, and where.
type Options struct {
	Level  string // "debug", "info", "warn" or "error"
	JSON   bool   // one object per line; else for people
	Output string // name of a file; "" is Stderr
	// Stderr is for what cannot be written to Output. nil is the process's.
	Stderr io.Writer
}

// Log is the log of a process. All methods may be called from any goroutine.
type Log struct {
	logger *zap.Logger
	level  zap.AtomicLevel
	limit  *limiter
	out    *output
}

// Open opens the log. The error of a file that cannot be opened names it. The caller
// must call Close.
func Open(o Options) (*Log, error) { return open(o, usual) }

func open(o Options, l limits) (*Log, error) {
	level, err := zap.ParseAtomicLevel(o.Level)
	if err != nil {
		return nil, err // it names the level
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	encoder := newEncoder(o.JSON)
	out, err := openOutput(o.Output, o.Stderr, func(lost uint64) []byte {
		return encodeLost(encoder, lost)
	})
	if err != nil {
		return nil, err
	}
	c := &core{LevelEnabler: level, encoder: encoder, out: out}
	// which has no field that fails
	c.limit = newLimiter(l, func(e zapcore.Entry, fields []zapcore.Field) { _ = c.encode(e, fields) })
	logger := zap.New(c, zap.ErrorOutput(zapcore.AddSync(o.Stderr)))
	return &Log{logger: logger, level: level, limit: c.limit, out: out}, nil
}

// Logger returns the logger to write with. What is written after Close is dropped.
func (l *Log) Logger() *zap.Logger { return l.logger }

// SetLevel changes what is logged from now on.
func (l *Log) SetLevel(level string) error {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return err // it names the level
	}
	l.level.SetLevel(parsed)
	return nil
}

// Reopen opens the file again by its name, after it was moved away. If that fails the
// log goes on in the file that it had, and says so. Without a file there is nothing to
// do.
func (l *Log) Reopen() error {
	if l.out.path == "" {
		return nil
	}
	closing, err := l.out.reopen()
	switch {
	case err != nil:
		l.logger.Error("log file kept", logfield.Err(err))
	case closing != nil:
		l.logger.Warn("log file before closed with an error", logfield.Err(closing))
	default:
		l.logger.Info("log file opened again")
	}
	return err
}

// Close ends the log. It tells how many lines were left out, and closes the file, if there is one.
func (l *Log) Close() error {
	l.limit.close()
	return l.out.close()
}

// core writes the lines of a level.
type core struct {
	zapcore.LevelEnabler
	encoder zapcore.Encoder // with the fields of the logger
	about   []zapcore.Field // those that say what its lines are about
	limit   *limiter
	out     *output
}

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	clone := *c
	clone.encoder = c.encoder.Clone()
	clone.about = slices.Clip(clone.about)
	fields = cutFields(fields)
	for i := range fields {
		fields[i].AddTo(clone.encoder)
		if slices.Contains(subjects, fields[i].Key) {
			clone.about = append(clone.about, fields[i])
		}
	}
	return &clone
}

func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if !c.limit.admits(e, c.about, fields) {
		return nil
	}
	return c.encode(e, cutFields(fields))
}

// maxField bounds a text in a line: what errors quote may be as long as a statement.
const maxField = 4 << 10

// cutFields returns the fields with no text longer than maxField. A stack is ours, and stays whole.
func cutFields(fields []zapcore.Field) []zapcore.Field {
	shared := true
	for i, f := range fields {
		var long string
		switch f.Type {
		case zapcore.StringType:
			long = f.String
		case zapcore.ErrorType:
			long = errorText(f.Interface)
		}
		if len(long) <= maxField || f.Key == "stack" {
			continue
		}
		if shared {
			fields, shared = slices.Clone(fields), false
		}
		fields[i] = zap.String(f.Key, strings.ToValidUTF8(long[:maxField], "")+"...")
	}
	return fields
}

// errorText is an error's text; "" if that panics, which the encoder knows how to log.
func errorText(err any) (text string) {
	defer func() { _ = recover() }()
	return err.(error).Error()
}

// encode writes a line.
func (c *core) encode(e zapcore.Entry, fields []zapcore.Field) error {
	line, err := c.encoder.EncodeEntry(e, fields)
	if err != nil {
		return err
	}
	c.out.write(line.Bytes())
	line.Free()
	return nil
}

// Sync has nothing to do: no line waits to be written.
func (*core) Sync() error { return nil }

// newEncoder makes the form of the lines. Times are in UTC for programs, and local for
// people.
func newEncoder(json bool) zapcore.Encoder {
	e := zapcore.EncoderConfig{
		TimeKey: logfield.NameTime, LevelKey: logfield.NameLevel, NameKey: logfield.NameLogger, MessageKey: logfield.NameEvent,
		EncodeLevel: zapcore.LowercaseLevelEncoder, EncodeDuration: zapcore.MillisDurationEncoder,
		EncodeTime: func(t time.Time, into zapcore.PrimitiveArrayEncoder) {
			into.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
		},
	}
	if json {
		return zapcore.NewJSONEncoder(e)
	}
	e.EncodeLevel = zapcore.CapitalLevelEncoder
	e.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
	return zapcore.NewConsoleEncoder(e)
}

// encodeLost makes the line that says how many were dropped.
func encodeLost(encoder zapcore.Encoder, lost uint64) []byte {
	e := zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Now(), LoggerName: "log", Message: "log lines lost"}
	line, err := encoder.EncodeEntry(e, []zapcore.Field{zap.Uint64("lines", lost)})
	if err != nil { // of an entry like that there is none
		return nil
	}
	defer line.Free()
	return append([]byte(nil), line.Bytes()...)
}
