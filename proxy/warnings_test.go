package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
)

// Checklist 30.
func TestAnErrorOfTheProxyIsTheOneThatSHOWWARNINGSTells(t *testing.T) {
	e := newEnv(t, setup{})
	modes := []string{"", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"}
	if e.Servers[0].IsMariaDB() {
		modes = append(modes, "ORACLE")
	}
	for _, mode := range modes {
		for _, names := range []string{"utf8mb4", "latin1", "gbk"} {
			for _, name := range []string{`plain`, `a\\b`, `it''s`, `caf` + map[string]string{"utf8mb4": "é", "latin1": "\xe9"}[names], strings.Repeat(`\\x`, 60)} {
				w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
				w.query("SET NAMES " + names + ", sql_mode = '" + mode + "'")
				w.query("SET character_set_results = utf8mb4")
				w.send(packet(command(protocol.ComQuery, "SELECT NEXTVAL('"+name+"')"))) // without a ping behind it, which resets the warnings
				want := serverError(t, w.receive(protocol.ShapeResult, nil))
				if want.Code != 4091 {
					t.Fatalf("%s, %s, %s: got %v, want 4091", mode, names, name, want)
				}
				_, rows := w.result("SHOW WARNINGS")
				text := want.Message
				if len(text) > 128 {
					text = text[:128]
				}
				if fmt.Sprint(rows) != fmt.Sprint([][]string{{"Error", "4091", text}}) {
					t.Errorf("%s, %s, %s: got %q, want %q", mode, names, name, rows, text)
				}
			}
		}
	}
}
