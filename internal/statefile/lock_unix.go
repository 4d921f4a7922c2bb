//go:build unix

package statefile

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks f, or returns errLocked.
func tryLock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return os.NewSyscallError("flock", err)
		}
		return nil
	}
}

// isFull reports whether the disk, or the quota of the user or process, is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
