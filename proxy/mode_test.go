package proxy_test

import (
	"context"
	"testing"

	"seqproxy/sequence"
)

func createSequence(t testing.TB, e *env, name string) {
	t.Helper()
	if _, err := e.Sequences.Create(context.Background(), sequence.CreateOptions{Name: name}); err != nil {
		t.Fatal(err)
	}
}

func TestACharacterSetChangedUnseenIsAskedForBeforeItMatters(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE PROCEDURE names() SET NAMES gbk")
	for _, change := range []string{
		"SET NAMES gbk", "SELECT 1; SET NAMES gbk", "EXECUTE IMMEDIATE 'SET NAMES gbk'",
		"BEGIN NOT ATOMIC SET NAMES gbk; END", "SET character_set_client = (SELECT 'gbk')",
	} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		w.query(change)
		// In GBK the backslash is the second half of a character; elsewhere it would
		// escape the quote.
		if got := w.query("SELECT NEXTVAL('s') /* '\xbf\\' */ , LENGTH('\xbf\\')"); got[4] == 0xff {
			t.Errorf("after %s: %v", change, serverError(t, got))
		}
		// A text that reads what the last one left is not disturbed by asking.
		w.query("CALL names()")
		w.query("DELETE FROM mysql.help_topic WHERE 0")
		if got := w.rows("SELECT 'x\xa1\xa1', ROW_COUNT()")[1]; got != "0" {
			t.Errorf("after %s: ROW_COUNT() is %s, want 0", change, got)
		}
	}
}
