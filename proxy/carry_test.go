package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
)

// A string keeps its meaning on the second shard, where it is read under another mode and character
// set, whatever was set before or after it.
func TestAUserVariableIsTheSameOnAnotherShardWhateverTheModes(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for _, steps := range [][]string{
		{`SET @x = "a"`, "SET sql_mode = 'ANSI_QUOTES'"},
		{`SET @x = "it's"`, "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"},
		{"SET sql_mode = 'ANSI_QUOTES'", `SET @x = 'a"b'`, "SET sql_mode = ''"},
		{"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", `SET @x = 'C:\new\table'`},
		{"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", `SET @x = 'C:\new\'`, "SET sql_mode = ''"},
		{`SET @x = 'C:\\new\ttable\\'`, "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"},
		{"SET NAMES latin1", "SET @x = 'caf\xe9'"},
		{"SET NAMES latin1", "SET @x = 'caf\xe9'", "SET NAMES utf8mb4"},
		{"SET @x = 'café'", "SET NAMES latin1"},
		{"SET NAMES gbk", "SET @x = '\xbf\\'", "SET NAMES utf8mb4 COLLATE utf8mb4_bin"},
		{"SET NAMES gbk", "SET @x = '\xbf\\'"},
		{"SET collation_connection = utf8mb4_bin", "SET @x = 'a'", "SET collation_connection = utf8mb4_general_ci"},
		{"SET @x = ''", "SET sql_mode = 'ANSI_QUOTES'"},
		{"SET @x = 0x5C27, @y = b'1011100', @z = N'\\\\'", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET NAMES latin1"},
		{"SET @x = 0xE9, @y = 'b' 'c'", "SET NAMES utf8mb4"},
		{"SET @x = 'before'", "SET sql_select_limit = 0", "SET NAMES latin1"},
	} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			direct := e.Wire(t, e.Servers[1].Addr(), wireLogin{Schema: e.Schemas[1]})
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			check := func(when string) {
				t.Helper()
				for _, name := range []string{"@x", "@y", "@z"} {
					read := fmt.Sprintf("SELECT HEX(%[1]s), CHARSET(%[1]s), COLLATION(%[1]s), @@sql_mode, @@character_set_client LIMIT 1", name)
					if got, want := fmt.Sprint(w.rows(read)), fmt.Sprint(direct.rows(read)); got != want {
						t.Errorf("%s: %s: got %s, want %s", when, name, got, want)
					}
				}
			}
			move := func(shard int) {
				t.Helper()
				if got := w.query("USE " + e.Schemas[shard]); got[4] != 0 {
					t.Fatal(serverError(t, got))
				}
			}
			for i, step := range steps { // the session also moves between the steps
				for _, c := range []*wire{direct, w} {
					if got := c.query(step); got[4] != 0 {
						t.Fatalf("%s: %v", step, serverError(t, got))
					}
				}
				if i == len(steps)-2 {
					move(1)
					check("in between")
					move(0)
				}
			}
			move(1)
			check("on the second shard")
			move(0)
			check("back on the first")
			// The session was on no shard before.
			w = e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			for _, step := range steps {
				w.query(step)
			}
			move(1)
			check("at first on the second shard")
		})
	}
}

// A long value is not brought along. The session stays where it is, and as it is.
func TestALongUserVariableStaysWhereItIs(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("SET @x = '" + strings.Repeat("x", 600<<10) + "'")
	if err := serverError(t, w.query("USE "+e.Schemas[1])); err.Code != 1235 || !strings.Contains(err.Message, "user variable") {
		t.Errorf("got %v, want 1235 about the user variable", err)
	}
	if got := w.rows("SELECT LENGTH(@x)")[0]; got != fmt.Sprint(600<<10) {
		t.Errorf("after the refusal: got %s bytes", got)
	}
	w.query("SET @x = 'short'")
	w.do(protocol.ComResetConn, "")
	if answer := w.query("USE " + e.Schemas[1]); answer[protocol.HeaderSize] != 0 {
		t.Error(serverError(t, answer))
	}
}

// COM_SET_OPTION holds on each shard, also after COM_RESET_CONNECTION and COM_CHANGE_USER.
func TestAnOptionOutlivesAReset(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	const several = "DO 1; DO 2"
	for how, reset := range map[string]func(w *wire){
		"COM_RESET_CONNECTION": func(w *wire) { w.do(protocol.ComResetConn, "") },
		"COM_CHANGE_USER":      func(w *wire) { w.change(e.User, e.Password, "", "caching_sha2_password") },
	} {
		for option, other := range map[string]protocol.Capability{"\x00\x00": allFraming &^ protocol.MultiStatements, "\x01\x00": allFraming} {
			direct := e.Wire(t, e.Servers[1].Addr(), wireLogin{Schema: e.Schemas[1], Capabilities: other})
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Capabilities: other})
			for _, c := range []*wire{direct, w} {
				before := c.query(several)[protocol.HeaderSize] == 0
				c.do(protocol.ComSetOption, option)
				reset(c)
				if after := c.query(several)[protocol.HeaderSize] == 0; after == before {
					t.Errorf("option %q after %s: several statements are taken: %v, want %v", option, how, after, !before)
				}
			}
			w.query("USE " + e.Schemas[1])
			direct.query("USE " + e.Schemas[1])
			if got, want := w.query(several), direct.query(several); string(got) != string(want) {
				t.Errorf("option %q after %s: got %q, want %q as direct", option, how, got, want)
			}
		}
	}
}

func TestAUserVariableWithANameThatDependsOnTheCharacterSetStaysWhereItIs(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("SET NAMES latin1")
	name := "@\xe9"
	if !e.Servers[0].IsMariaDB() {
		name = "@`\xe9`" // MySQL's error has no quotes here
	}
	w.query("SET " + name + " = 1")
	if err := serverError(t, w.query("USE "+e.Schemas[1])); err.Code != 1235 || !strings.Contains(err.Message, "name") {
		t.Errorf("got %v, want 1235 about the name", err)
	}
	if got := w.rows("SELECT " + name)[0]; got != "1" {
		t.Errorf("after the refusal: got %s, want 1", got)
	}
}
