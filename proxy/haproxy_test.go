package proxy_test

import (
	"os"
	osexec "os/exec"
	"testing"
)

// haproxyBinary returns HAProxy, or "" if it is not there: a failure where no test may be skipped.
func haproxyBinary(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if path, err := osexec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" || os.Getenv("SEQPROXY_TEST_CLIENTS") == "all" {
		t.Fatal("HAProxy is not there; `make deps-clients` installs it (nothing may be skipped with CI=true or SEQPROXY_TEST_CLIENTS=all)")
	}
	return ""
}
