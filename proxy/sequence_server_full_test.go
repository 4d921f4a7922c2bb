package proxy_test

import (
	"strings"
	"testing"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// A sequence server without free connections is unavailable like one that is down: numbers come
// from the cache, the error names a sequence without any, and all goes on by itself when there is
// room again.
func TestASequenceServerWithoutConnectionsToGive(t *testing.T) {
	// A connection without a login stays for so long.
	numbers := mysqltest.Start(t, "--max-connections=10", "--connect-timeout=100")
	e := newEnv(t, setup{Sequence: func(o *sequence.Options) {
		o.Servers[0] = sequence.ServerOptions{Addr: numbers.Addr(), User: "root", Database: numbers.Schema(t)}
	}})
	createSequence(t, e, "photos")
	create(t, e, sequence.CreateOptions{Name: "albums", Cache: 1})
	c := e.Conn(t, e.Schemas[0], nil)
	for _, name := range []string{"photos", "albums"} {
		eventually(t, "a number of "+name, func() bool { return run(t.Context(), c, "text", "SELECT NEXTVAL('"+name+"')") == nil })
	}

	direct, err := numbers.DB(t, "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	var full []func()
	eventually(t, "the proxy has no connection to it, and gets none", func() bool {
		full = append(full, exhaust(t, numbers.Addr()))
		ids := value(t, direct, "SELECT IFNULL(GROUP_CONCAT(id), '') FROM information_schema.processlist WHERE user = 'root' AND id <> CONNECTION_ID()")
		for id := range strings.SplitSeq(ids, ",") {
			_, _ = direct.ExecContext(t.Context(), "KILL "+id) // the connection may have gone
		}
		return ids == ""
	})
	e.impatient()
	for range 50 {
		exec(t, c, "SELECT NEXTVAL('photos')", "SELECT 1", "DO NEXTVAL('photos')")
	}
	for range 3 {
		wantError(t, c, 1105, "SELECT NEXTVAL('albums', 1000)", "albums", "unavailable")
	}
	if err := e.tryLogin(t, e.Addr(), e.Schemas[0], nil); err != nil {
		t.Errorf("a login: %v", err)
	}
	for _, release := range full {
		release()
	}
	eventually(t, "numbers of albums", func() bool { return run(t.Context(), c, "text", "SELECT NEXTVAL('albums', 1000)") == nil })
	if got, want := value(t, c, "SELECT NEXTVAL('photos')"), "102"; got != want {
		t.Errorf("behind it: got %s, want %s", got, want)
	}
}
