package sequence

import "fmt"

// hookError is what a test ends a coordinator with, in the middle, as if its process had been killed: nothing is undone.
type hookError struct{ step, address string }

func (e *hookError) Error() string { return fmt.Sprintf("ended after %q on %s", e.step, e.address) }

// hook is called after each step on a member. Only tests of this package set one.
func (r *planRun) hook(step string, m Member) error {
	if f := r.s.planHook; f != nil {
		return f(step, m.Address)
	}
	return nil
}
