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

// COM_SET_OPTION holds on each shard, also after COM_RESET_CONNECTION.
func TestAnOptionOutlivesAReset(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	const several = "DO 1; DO 2"
	direct := e.Wire(t, e.Servers[1].Addr(), wireLogin{Schema: e.Schemas[1], Capabilities: allFraming &^ protocol.MultiStatements})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Capabilities: allFraming &^ protocol.MultiStatements})
	for _, c := range []*wire{direct, w} {
		if err := serverError(t, c.query(several)); err.Code != 1064 {
			t.Errorf("got %v, want 1064", err)
		}
		c.do(protocol.ComSetOption, "\x00\x00")
		c.do(protocol.ComResetConn, "")
	}
	w.query("USE " + e.Schemas[1])
	if got, want := w.query(several), direct.query(several); string(got) != string(want) {
		t.Errorf("got %q, want %q as direct", got, want)
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
