//go:build !seqproxy_fault_fsync

package statefile

import "os"

// appendLine has line on disk, at the offset at, when it returns.
func appendLine(f *os.File, line []byte, at int64) error {
	if _, err := f.WriteAt(line, at); err != nil {
		return err
	}
	return f.Sync()
}
