package main

import (
	"strings"
	"testing"

	"seqproxy/test/mysqltest"
)

// The output of schema is enough for an account without CREATE. It may be run again.
func TestSchemaPrintsWhatAnAccountWithoutCREATENeeds(t *testing.T) {
	s := mysqltest.Start(t)
	config := write(t, "seqproxy.toml", "listen = '127.0.0.1:0'\nunknown_sequence = 'create'\n[sequence]\ndatabase = 'numbers'\ntable = 'counters'\n"+
		"[[sequence.server]]\naddress = '"+s.Addr()+"'\nuser = \"o'brien\"\npassword = 'p'\n[[user]]\nname = 'app'\npassword = 'p'\n")
	p := begin(t, "schema", "-config", config)
	p.end(0)
	printed := p.stdout()
	s.Exec(t, "CREATE USER 'o''brien'@'%' IDENTIFIED BY 'p'")
	for range 2 {
		for _, text := range strings.Split(strings.TrimSpace(printed), ";\n") {
			s.Exec(t, strings.TrimSuffix(text, ";"))
		}
	}
	proxy := begin(t, "-config", config)
	if got := query(t, proxy.address(), "app", "p", "SELECT NEXTVAL('photos')"); got != "1" {
		t.Errorf("got %s, want 1", got)
	}
}
