package sequence

import (
	"fmt"

	"go.uber.org/zap"
)

// hookError is what a test ends a coordinator with, in the middle, as if its process had been killed: nothing is undone.
type hookError struct{ step, address string }

func (e *hookError) Error() string { return fmt.Sprintf("ended after %q on %s", e.step, e.address) }

// did tells of a step that was done on a member. An error ends the coordinator there: the hook of a test of this package.
func (r *planRun) did(step string, m Member) error {
	r.s.log.Info("step of a change of sequence servers", zap.String("change", r.plan.UUID), zap.String("state", step), zap.String("server", m.Address))
	if f := r.s.planHook; f != nil {
		return f(step, m.Address)
	}
	return nil
}
