// Package logs writes the log: one line for each event, as JSON or for people, to stderr or to a
// file. The file can be opened again after somebody has moved it away. Lines are not buffered. Of
// many similar lines most are only counted. A log that cannot be written stops nothing: lines are
// dropped, and their number is logged when writing works again.
//
// Start at [Open].
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

// Options say what is logged and where.
type Options struct {
	Level  string // "debug", "info", "warn" or "error"
	JSON   bool   // one object per line; else for people
	Output string // name of a file; "" means Stderr
	// Stderr gets errors about Output. nil means the stderr of the process.
	Stderr io.Writer
}

// Log is the log of a process. Any goroutine may call its methods.
type Log struct {
	logger *zap.Logger
	level  zap.AtomicLevel
	limit  *limiter
	out    *output
}

// Open opens the log. The error names a file that cannot be opened. The caller must call Close.
func Open(o Options) (*Log, error) { return open(o, usual) }

func open(o Options, l limits) (*Log, error) {
	level, err := zap.ParseAtomicLevel(o.Level)
	if err != nil {
		return nil, err // the error names the level
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
	// this one has no field that can fail
	c.limit = newLimiter(l, func(e zapcore.Entry, fields []zapcore.Field) { _ = c.encode(e, fields) })
	logger := zap.New(c, zap.ErrorOutput(zapcore.AddSync(o.Stderr)))
	return &Log{logger: logger, level: level, limit: c.limit, out: out}, nil
}

// Logger returns the logger. Lines after Close are dropped.
func (l *Log) Logger() *zap.Logger { return l.logger }

// SetLevel changes the level from now on.
func (l *Log) SetLevel(level string) error {
	parsed, err := zapcore.ParseLevel(level)
	if err != nil {
		return err // the error names the level
	}
	l.level.SetLevel(parsed)
	return nil
}

// Reopen opens the file again by its name, after somebody has moved it away. If that fails, the log
// continues in the old file and says so. Without a file it does nothing.
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

// Close ends the log. It logs how many lines were left out and closes the file.
func (l *Log) Close() error {
	l.limit.close()
	return l.out.close()
}

// core writes the lines of enabled levels.
type core struct {
	zapcore.LevelEnabler
	encoder zapcore.Encoder // has the fields of the logger
	about   []zapcore.Field // fields with the subject of its lines
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

// maxField bounds a text in a line, in bytes: an error may quote a whole statement.
const maxField = 4 << 10

// cutFields cuts texts to maxField. A stack is not cut, since it contains nothing of a client's.
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

// errorText returns an error's text, or "" if that panics. The encoder can log a panic.
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

// Sync does nothing: no line is buffered.
func (*core) Sync() error { return nil }

// newEncoder returns the encoder of lines. Times are UTC for programs, and local for people.
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

// encodeLost returns the line with the count of dropped lines.
func encodeLost(encoder zapcore.Encoder, lost uint64) []byte {
	e := zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Now(), LoggerName: "log", Message: "log lines lost"}
	line, err := encoder.EncodeEntry(e, []zapcore.Field{zap.Uint64("lines", lost)})
	if err != nil { // impossible for such an entry
		return nil
	}
	defer line.Free()
	return append([]byte(nil), line.Bytes()...)
}
