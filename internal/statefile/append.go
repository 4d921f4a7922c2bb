package statefile

import (
	"os"

	"seqproxy/internal/planted"
)

// appendLine has line on disk, at the offset at, when it returns.
func appendLine(f *os.File, line []byte, at int64) error {
	if planted.Fault(planted.Fsync) {
		// What a machine that loses its power makes of a line that was written and not flushed.
		// A process that is killed alone leaves such a line to the system, which writes it.
		return nil
	}
	if _, err := f.WriteAt(line, at); err != nil {
		return err
	}
	return f.Sync()
}
