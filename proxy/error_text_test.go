package proxy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"seqproxy/protocol"
)

// A text that would be longer is cut where servers cut theirs, at a whole character.
func TestAnErrorsTextIsCutAsServersCutIt(t *testing.T) {
	e := newEnv(t, setup{})
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: allFraming})

	// The server's own: characters that gbk has not are six bytes of it on MariaDB, file
	// names five for each on MySQL.
	euros := strings.Repeat("€", 64)
	p.query("SET NAMES utf8mb4, character_set_results = gbk")
	cut := serverError(t, p.query("SELECT 1 FROM `"+euros+"`.`"+euros+"`"))
	if n := len(cut.Message); n > protocol.MaxErrorText || n <= protocol.MaxErrorText-len(`\20AC`) {
		t.Errorf("the server cuts at %d bytes, want %d: %s", n, protocol.MaxErrorText, cut.Message)
	}
	p.query("SET NAMES utf8mb4")

	for _, c := range []string{"x", "é", "€", "😀"} {
		for _, n := range []int{480, 1000, 100_000} {
			for before := range 4 {
				name := strings.Repeat("a", before) + strings.Repeat(c, n/len(c))
				answer := p.Proxy.query("SELECT NEXTVAL('" + name + "')")
				got := serverError(t, answer)
				want := "Unknown SEQUENCE: '" + name + "'"
				if len(want) > 511 {
					want = want[:511]
					for !utf8.ValidString(want) {
						want = want[:len(want)-1]
					}
				}
				if got.Message != want {
					t.Errorf("a name of %d bytes of %s: got %d bytes %q, want %d bytes %q", len(name), c, len(got.Message), got.Message, len(want), want)
				}
			}
		}
	}

	// In other places that name what a client has sent, and behind a prepared statement.
	long := strings.Repeat("n", 1_000_000)
	for _, sql := range []string{
		"CREATE SEQUENCE `" + long + "`", "DROP SEQUENCE `" + long + "`", "ALTER SEQUENCE " + long + " INCREMENT 2", "SHOW CREATE SEQUENCE " + long,
		"SELECT NEXTVAL('" + long + "') + 1", "SELECT SETVAL('" + long + "', 5)", "SELECT LASTVAL(`" + long + "`)", "INSERT INTO " + long + " VALUES (NEXTVAL('" + long + "'))",
		"SEQPROXY " + long, "SHOW SEQPROXY " + long, "SHOW CREATE SEQUENCE s FOR " + long, "USE " + long, "KILL '" + long + "'",
	} {
		for _, cmd := range []protocol.Command{protocol.ComQuery, protocol.ComStmtPrepare} {
			answer := p.Proxy.do(cmd, sql)
			what := fmt.Sprintf("command %d %.40s", cmd, sql)
			if answer[4] != 0xff && cmd == protocol.ComQuery {
				t.Errorf("%s: got %.100q, want an error", what, answer)
			} else if answer[4] == 0xff && len(answer) > protocol.HeaderSize+9+protocol.MaxErrorText {
				t.Errorf("%s: got an error of %d bytes: %.100q", what, len(answer), answer)
			}
			if warnings := p.Proxy.query("SHOW WARNINGS"); bytes.Count(warnings, []byte("n")) > 2*protocol.MaxErrorText {
				t.Errorf("%s: SHOW WARNINGS has %d bytes, want fewer", what, len(warnings))
			}
		}
	}
}
