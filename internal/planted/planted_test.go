package planted_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"seqproxy/internal/planted"
)

// The environment chooses a fault, and sets the clock, in a build with the tag and in no other.
func TestANormalBuildHasNoFaults(t *testing.T) {
	if os.Getenv("SEQPROXY_TEST_FAULT_CHILD") != "" {
		for _, f := range planted.All {
			if planted.Fault(f) {
				os.Exit(3)
			}
		}
		if time.Until(planted.Now()).Abs() > time.Minute {
			os.Exit(4)
		}
		os.Exit(0)
	}
	lead := filepath.Join(t.TempDir(), "lead")
	if err := os.WriteFile(lead, []byte("1h"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range planted.All {
		cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestANormalBuildHasNoFaults$")
		cmd.Env = append(os.Environ(), "SEQPROXY_TEST_FAULT_CHILD=1", planted.Variable+"="+string(f), planted.ClockVariable+"="+lead)
		if err := cmd.Run(); err != nil {
			t.Errorf("%s=%s: got %v, want no fault, and the time of the machine", planted.Variable, f, err)
		}
	}
}
