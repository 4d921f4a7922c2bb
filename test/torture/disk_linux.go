package torture

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// smallDisk makes a directory a small disk of its own. It reports false where that is not allowed,
// because it needs root.
func smallDisk(dir string) (ok bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	err = syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700")
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENODEV):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("mount a small disk on %s: %w", dir, err)
	}
	return true, nil
}

// endDisk undoes smallDisk.
func endDisk(dir string) error {
	if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}
