package link_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/sequence/link"
)

// Each text is what a server said when another transaction was first, or failed for another reason.
func TestAConflictIsKnownByWhatTheServerSays(t *testing.T) {
	for _, test := range []struct {
		number   uint16
		message  string
		conflict bool
	}{
		{1213, "Deadlock found when trying to get lock; try restarting transaction", true},
		{1205, "Lock wait timeout exceeded; try restarting transaction", true},
		{1020, "Record has changed since last read in table 'sequence'", true},
		{3101, "Plugin instructed the server to rollback the current transaction.", true},
		{1180, "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT", true},
		{1180, `Got error 28 "No space left on device" during COMMIT`, false},
		{1690, "BIGINT UNSIGNED value is out of range", false},
	} {
		err := fmt.Errorf("reserve: %w", &mysql.MySQLError{Number: test.number, Message: test.message})
		if got := link.IsConflict(err); got != test.conflict {
			t.Errorf("%v: a conflict: %v, want %v", err, got, test.conflict)
		}
	}
	if link.IsConflict(errors.New("Got error 149 during COMMIT")) {
		t.Error("what no server said is taken for a conflict")
	}
}
