package statefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// errLocked says that another process has the lock.
var errLocked = errors.New("held by another process")

// lockDir locks a directory for this process until the file is closed. The lock belongs to the open
// file and not to the process. So it can be passed on with the descriptor. The system releases it
// when the last process with the descriptor has ended.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state directory: %w", err)
	}
	err = tryLock(f)
	if errors.Is(err, errLocked) {
		return nil, errors.Join(fmt.Errorf("the state directory %s is in use by %s: every proxy needs a directory of its own", dir, holder(f)), f.Close())
	}
	if err == nil {
		err = writeHolder(f)
	}
	if err != nil && !isFull(err) {
		return nil, errors.Join(fmt.Errorf("lock the state directory %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// writeHolder writes who has the lock, for others to read.
func writeHolder(f *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(fmt.Appendf(nil, "process %d on %s since %s\n", os.Getpid(), host, time.Now().UTC().Format("2006-01-02 15:04:05 UTC")), 0)
	return err
}

// holder returns who has the lock.
func holder(f *os.File) string {
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	line := strings.TrimSpace(string(text))
	if err != nil || line == "" {
		return "another process" // it has only just locked, or the disk was full
	}
	return line
}
