package statefile

import (
	"os"

	"seqproxy/internal/planted"
)

// appendLine writes line at the offset at. When it returns, the line is on disk.
func appendLine(f *os.File, line []byte, at int64) error {
	if planted.Fault(planted.Fsync) {
		// This leaves the file as after a loss of power before a flush. If only the process is
		// killed, the system still writes the line.
		return nil
	}
	if _, err := f.WriteAt(line, at); err != nil {
		return err
	}
	return f.Sync()
}
