package proxy_test

import (
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

// The oracle is the same text on a direct connection, whose KILL names a direct one.
//
// Checklist 33.
func TestAKillAmongSeveralStatementsEndsWhatADirectOneEnds(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	mariaDB := e.Servers[0].IsMariaDB()
	e.hold(t, 0)
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE TABLE killed (a INT)", "CREATE TABLE filled (id BIGINT PRIMARY KEY, a INT)")
	createSequence(t, e, "s")
	for _, text := range []string{
		"KILL %s; SELECT 1", "SELECT 1; KILL %s", "SELECT 1, 2; KILL CONNECTION '%s'; SELECT 3", "kill connection %s;;", "KILL %s; -- no more",
		"KILL QUERY %s; SELECT 1", "SELECT 1; KILL QUERY %s", "SELECT 1; KILL QUERY %s; SELECT 2;", "SET @x = 1; DO 0; kill query %s ;INSERT INTO killed VALUES (@x)",
		"/*! KILL QUERY %s */; SELECT 1", "KILL QUERY %s; KILL QUERY %s; SELECT 'KILL 5; KILL 6'", "KILL QUERY %s; SELECT nothing; SELECT 1",
		"KILL HARD %s; SELECT 1", "SELECT 1; KILL SOFT QUERY %s", "INSERT INTO killed VALUES (5), (6); KILL %s; SELECT ROW_COUNT()",
	} {
		if !mariaDB && (strings.Contains(text, "HARD") || strings.Contains(text, "SOFT")) {
			continue
		}
		t.Run(text, func(t *testing.T) {
			e.killsAsDirect(t, func(killer *wire, id string) []byte { return killer.query(strings.ReplaceAll(text, "%s", id)) },
				strings.Contains(strings.ToUpper(text), "QUERY"))
		})
	}
}

func TestAKillAmongSeveralStatementsIsCarriedOutInItsTurn(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	createSequence(t, e, "s")
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE PROCEDURE p() SELECT 1")
	killer := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	ended := func(text string, w *wire) {
		t.Helper()
		if got := w.ended(); len(got) > 0 && got[4] != 0xff {
			t.Errorf("%s: the killed got %q", text, got)
		}
	}

	for _, text := range []string{"KILL %s; SELECT GET_LOCK('turn', 15)", "SELECT 1; KILL %s; SELECT GET_LOCK('turn', 15)"} {
		for _, addr := range []string{e.Servers[0].Addr(), e.Addr()} {
			victim, on := e.Wire(t, addr, wireLogin{Schema: e.Schemas[0]}), e.Wire(t, addr, wireLogin{Schema: e.Schemas[0]})
			victim.query("DO GET_LOCK('turn', 15)")
			packets := split(on.query(strings.ReplaceAll(text, "%s", victim.id())))
			if row := packets[len(packets)-2]; string(row) != "\x011" {
				t.Errorf("%s at %s: got %q, want the lock of the killed", text, addr, row)
			}
			on.query("DO RELEASE_LOCK('turn')")
			ended(text, victim)
		}
	}

	// Killed sessions with and without servers, for every outcome of the text.
	for _, victim := range []*wire{
		e.Wire(t, e.Addr(), wireLogin{}),
		e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]}),
	} {
		text := "SELECT 1; KILL " + victim.id() + "; SELECT NEXTVAL('s')"
		packets := split(killer.query(text))
		if last := packets[len(packets)-1]; last[0] == 0xff {
			t.Errorf("%s: %v", text, protocol.ParseServerError(last))
		}
		ended(text, victim)
	}

	// No session is killed where a statement before the KILL fails, or where its answers cannot be
	// counted.
	victim := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for text, code := range map[string]uint16{
		"SELECT nothing; KILL " + victim.id():                        1054,
		"SELECT 1; SELECT nothing; KILL " + victim.id() + "; DO 0":   1054,
		"SELECT 1; KILL 999999999; KILL " + victim.id():              1094,
		"SELECT 1; KILL " + e.shiftedID(1000) + "; SELECT 1":         1094,
		"CALL p(); KILL " + victim.id():                              1235,
		"SELECT 1; CALL p(); KILL QUERY " + victim.id() + "; DO 0":   1235,
		"SELECT 1; KILL " + e.shiftedID(1<<21):                       1094,
		"SELECT 'x; KILL " + victim.id() + "; SELECT nothing'; DO x": 1054,
	} {
		packets := split(killer.query(text))
		if last := packets[len(packets)-1]; last[0] != 0xff || protocol.ParseServerError(last).Error() == "" {
			t.Errorf("%s: got %q, want an error", text, last)
		} else if got := uint16(last[1]) | uint16(last[2])<<8; got != code {
			t.Errorf("%s: got %v, want %d", text, protocol.ParseServerError(last), code)
		}
		victim.ping(text)
	}
	// The session kills itself.
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.send(packet(command(protocol.ComQuery, "SELECT 1; KILL "+w.id()+"; SELECT 2")))
	w.ended()
}

func TestAKillAmongSeveralStatementsOfWhatIsNotOnesOwn(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.Users = append(o.Users, proxy.User{Name: "plain_several", Password: "p"}) }})
	e.Servers[0].Exec(t, "CREATE USER plain_several IDENTIFIED BY 'p'")
	t.Cleanup(func() { e.Servers[0].Exec(t, "DROP USER plain_several") })
	user, password := "plain_several", "p"
	victim, killer := e.Wire(t, e.Addr(), wireLogin{}), e.Wire(t, e.Addr(), wireLogin{User: &user, Password: &password})
	victim.query("SET @x = 1")
	packets := split(killer.query("SELECT 1; KILL " + victim.id() + "; SELECT 2"))
	if last := packets[len(packets)-1]; last[0] != 0xff || !strings.Contains(string(last), "You are not owner of thread "+victim.id()) || len(packets) < 4 {
		t.Errorf("got %q, want the first result and 1095", packets)
	}
	victim.ping("the KILL of somebody else")
}
