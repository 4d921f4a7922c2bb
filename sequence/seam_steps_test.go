package sequence

import (
	"runtime"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// StepTakenOver is a step that OnPlanStep hears of, besides the states: another coordinator's
// change was taken over.
const StepTakenOver = "taken over"

// LogSteps lets OnPlanStep hear of steps, of a process that is about to be made.
func LogSteps(o *Options) {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	o.Logger = o.Logger.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return &stepCore{Core: c} }))
}

// OnPlanStep has f called after each step of a change of members that this process makes, once that
// is logged. Where f fails the goroutine of the change ends, as if the process had been killed:
// nothing is undone.
func (in Inner) OnPlanStep(f func(step, address string) error) {
	hears := in.s.log.Core().(*stepCore)
	if hears.f.Store(&f); f == nil {
		hears.f.Store(nil)
	}
}

// stepCore hears of the steps that are logged.
type stepCore struct {
	zapcore.Core
	f atomic.Pointer[func(step, address string) error]
}

func (c *stepCore) Enabled(level zapcore.Level) bool {
	return level >= zapcore.InfoLevel || c.Core.Enabled(level)
}

func (c *stepCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	to = c.Core.Check(e, to)
	if e.Message == "step of a change of sequence servers" || e.Message == "change of sequence servers taken over" {
		to = to.AddCore(e, c)
	}
	return to
}

func (c *stepCore) Write(_ zapcore.Entry, fields []zapcore.Field) error {
	f := c.f.Load()
	if f == nil {
		return nil
	}
	step, address := StepTakenOver, ""
	for _, field := range fields {
		switch field.Key {
		case "state":
			step = field.String
		case "server":
			address = field.String
		}
	}
	if (*f)(step, address) != nil {
		runtime.Goexit()
	}
	return nil
}
