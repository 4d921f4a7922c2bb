//go:build seqproxy_fault_fsync

package statefile

import "os"

// appendLine is the planted fault that tests have to find: it does what a machine that loses its power makes of a line that was written
// and not flushed. (A process that is killed alone leaves such a line to the system, which writes it.)
func appendLine(*os.File, []byte, int64) error { return nil }
