package define

import "fmt"

// NeedsOneServer returns an error that wraps ErrSeveral.
func NeedsOneServer(format string, args ...any) error {
	return fmt.Errorf("%s: %w, and there are several", fmt.Sprintf(format, args...), ErrSeveral)
}
