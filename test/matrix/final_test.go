package matrix

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// CI may repeat a failed test if a busy machine can be the cause, but never after a number that
// came twice or out of order. The messages here are those of the tests.
func TestAFailureThatASecondRunCouldHideIsNotRunAgain(t *testing.T) {
	final := func(line string) bool {
		t.Helper()
		log := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(log, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		script := exec.Command("../../scripts/final.sh", log)
		err := script.Run()
		if status := script.ProcessState; err != nil && (status == nil || status.ExitCode() != 1) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, line := range []string{
		"WARNING: DATA RACE",
		"panic: runtime error: index out of range [3] with length 3",
		"    group_test.go:146: number 41 was given to a third, and before to b",
		"    reserve_test.go:37: 41 was given to proxy 1 and to proxy 2",
		"    restart_test.go:294: after 3 restarts 41 was given by app and by proxy 2",
		"    plan_estate_test.go:148: photos: 41 was given twice",
		"    plan_change_test.go:107: 41 was reserved before",
		"    ordered_test.go:210: round 7: got 41 after 41",
		"    state_test.go:76: photos: got 41 after 60 was given, want 61",
		"    restart_test.go:148: got 41 again",
		"    plan_load_test.go:104: 41 after 60: numbers of a proxy rise",
		"    members_test.go:98: a: got 41 after 60, want rising numbers",
		"    torture_keys_test.go:195: connection 3: number 41 came after 60",
		"    state_test.go:102: after kill -9 and a restored backup got 41, want one above 60",
		"    give_back_test.go:95: got 41, want a number above all that were ever reserved, which are up to 60",
		"    order_replica_test.go:118: 41 was given, though the replica is not seen",
		"    ticket_canary_test.go:160: b gave 41, below 60 of before",
		"    plan_late_test.go:33: the second goes on above 41, and 60 was given",
		"    ordered_history_test.go:120: not in the order of time: a: 41; and then b: 40",
		"FAIL	seqproxy/test/torture	67.001s",
	} {
		if !final(line) {
			t.Errorf("may be run again: %s", line)
		}
	}
	for _, line := range []string{
		"    cache_test.go:410: got context deadline exceeded after 1.02s, want ErrUnfit at once",
		"    outage_test.go:53: the error came after 2.31s, want the allocate timeout of 2s",
		"    main_test.go:150: reservation of photos ends: not within 30s",
		`    members_test.go:60: sequence "photos": sequence server 127.0.0.1:24908 is unavailable (waited 3.001s)`,
		"    names_test.go:220: 2000 takes of an unknown sequence ran 12 statements, want a few",
		"    pool_test.go:31: 12 connections after 30s, want 10",
		"    reserve_test.go:336: round 2: the row has 41 after 40 numbers, want all others given back",
		"FAIL	seqproxy/sequence	812.001s",
		"--- FAIL: TestNoNumberComesTwiceWhateverIsChanged (31.02s)",
		"    --- FAIL: TestKeysThatComeTwiceAreSeen/photos (31.02s)",
		"    duplicates_test.go:234: did not happen within 30s: the server is back",
	} {
		if final(line) {
			t.Errorf("is never run again: %s", line)
		}
	}
}
