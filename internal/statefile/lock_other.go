//go:build !unix

package statefile

import (
	"errors"
	"os"
)

// tryLock does nothing on this system.
func tryLock(*os.File) error {
	return errors.New("a state directory cannot be locked on this system: leave state_dir out")
}

func isFull(error) bool { return false }
