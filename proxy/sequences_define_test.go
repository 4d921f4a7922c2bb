package proxy_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/proxy"
)

// definitions are options that both MariaDB and the proxy know.
var definitions = []string{
	"start with 1 minvalue 1 maxvalue 9223372036854775806 increment by 1 cache 1000",
	"start 5 increment = 2 minvalue = 3 maxvalue 1001 nocache cycle",
	"maxvalue 99 cache 0 nocycle",
	"start = 7 maxvalue = 4294967295 cache = 20 comment = 'it''s a \\\\ \"quoted\" `comment`'",
	"increment 1000000000 maxvalue 9223372036854775806 cache 2 comment ''",
}

func TestSHOWCREATESEQUENCEAnswersAsMariaDB(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].OnMariaDB(t, "MySQL has no sequences")
	through, direct := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]}), e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: e.Schemas[0]})
	for i, options := range definitions {
		if !strings.Contains(options, "cache") {
			t.Fatalf("%s: MariaDB has no adaptive cache", options)
		}
		create, show := "CREATE OR REPLACE SEQUENCE `my seq` "+options, "SHOW CREATE SEQUENCE `my seq`"
		for _, w := range []*wire{through, direct} {
			if got := w.query(create); got[4] != 0 {
				t.Fatalf("%s: %v", create, serverError(t, got))
			}
		}
		if got, want := through.query(show), collation(direct.query(show)); !bytes.Equal(got, want) {
			t.Errorf("%d: got %q %q,\nwant %q %q", i, through.decode(got), got, direct.decode(want), want)
		}
	}
	definitions := func(answer []byte) []byte { return answer[:bytes.Index(answer, []byte("Msg_text"))+len("Msg_text")+13] }
	check, want := definitions(through.query("CHECK SEQUENCE `my seq`")), collation(definitions(direct.query("CHECK TABLE `my seq`")))
	if !bytes.Equal(check, want) {
		t.Errorf("the columns of CHECK SEQUENCE: got %q, want those of CHECK TABLE, %q", check, want)
	}
}

// collation replaces utf8mb4_unicode_ci by utf8mb4_general_ci. MariaDB 11.5 and later has the
// former for texts in its own character set.
func collation(answer []byte) []byte {
	return bytes.ReplaceAll(answer, []byte("\f\xe0\x00"), []byte("\f-\x00"))
}

// The output of SHOW CREATE SEQUENCE makes the same sequence, however the session reads strings.
func TestWhatSHOWCREATESEQUENCEPrintsMakesTheSame(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".`t``1` (`a.b` BIGINT UNSIGNED PRIMARY KEY)")
	c := e.Conn(t, e.Schemas[0], nil)
	made := 0
	same := func(mode, options string) {
		t.Helper()
		made++
		name := fmt.Sprintf("a`b %d", made) // another name, because numbers of a name go on above those of a dropped sequence
		quoted := "`" + strings.ReplaceAll(name, "`", "``") + "`"
		exec(t, c, "CREATE OR REPLACE SEQUENCE "+quoted+" "+options)
		first := createdAs(t, c, name)
		exec(t, c, "DROP SEQUENCE "+quoted, first)
		if second := createdAs(t, c, name); second != first || strings.Contains(options, "cache default") && strings.Contains(first, "nocache") {
			t.Errorf("%s, %s:\ngot  %s\nwant %s", mode, options, second, first)
		}
		exec(t, c, "DROP SEQUENCE "+quoted) // another one of them may have its column
	}
	for _, mode := range []string{"", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"} {
		exec(t, c, "SET sql_mode = '"+mode+"'")
		for _, options := range append(definitions,
			"", "cache default", "as int unsigned", "as bigint", "json_safe", "order cache 5", "outage_cover 604800", "maxvalue 18446744073709551615",
			"owned by "+e.Schemas[0]+".`t``1`.`a.b`", "owned by `t``1`.`a.b` comment 'x\ny'", "minvalue 5", "increment 3 start 7",
			"minvalue 9 start 17000000000000000000", "format 'a\"b{n}'",
		) {
			same(mode, options)
		}
	}
	for _, options := range []string{
		"uuid", "uuid version 4 binary comment 'x'", "bit_reversed json_safe", "bit_reversed skip range 1 to 9 cache 7", "rotate 1 digits 9 start 5 maxvalue 900",
		"shard bits 4 owned by `t``1`.`a.b`", "format 'PO-{yyMMdd}-{n:6}' time zone 'Asia/Shanghai' widen order",
		"format '{yyyyMMdd}{n:4}' reset daily", "format '{yyyy}{n:4}' reset yearly outage_cover 60", "format '{yyyy}{n:4}' reset yearly cache 9",
		"format '{yyyyMM}{n:4}' reset monthly cache default", "snowflake", "snowflake epoch '2020-01-01' time bits 40 outage_cover 60 comment 'x'",
	} {
		same("ANSI_QUOTES", options)
	}
	exec(t, c, "CREATE SEQUENCE days FORMAT '{yyyyMMdd}{n:4}' RESET DAILY", "ALTER SEQUENCE days CACHE DEFAULT")
	first := createdAs(t, c, "days")
	exec(t, c, "DROP SEQUENCE days", first)
	if second := createdAs(t, c, "days"); second != first || strings.Contains(first, "nocache") {
		t.Errorf("RESET with CACHE DEFAULT:\ngot  %s\nwant %s", second, first)
	}
}

func createdAs(t *testing.T, c *sql.Conn, name string) string {
	t.Helper()
	_, rows := table(t, c, "SHOW CREATE SEQUENCE `"+strings.ReplaceAll(name, "`", "``")+"`")
	if len(rows) != 1 || rows[0][0] != name {
		t.Fatalf("got %q", rows)
	}
	return rows[0][1]
}

func TestALTERSEQUENCEChangesWhatItNames(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	const name = "`a``b`"
	for _, test := range []struct{ options, want string }{
		{"increment by 5", "start with 1 minvalue 1 nomaxvalue increment by 5 nocycle ENGINE=InnoDB"},
		{"minvalue 2 start 3", "start with 3 minvalue 2 nomaxvalue increment by 5 nocycle ENGINE=InnoDB"},
		{"maxvalue 1000 nocache", "start with 3 minvalue 2 maxvalue 1000 increment by 5 nocache nocycle ENGINE=InnoDB"},
		{"cache 30 comment 'c'", "start with 3 minvalue 2 maxvalue 1000 increment by 5 cache 30 nocycle ENGINE=InnoDB COMMENT='c'"},
		{"cycle", "start with 3 minvalue 2 maxvalue 1000 increment by 5 cache 30 cycle ENGINE=InnoDB COMMENT='c'"},
		{"no maxvalue no minvalue no cycle cache default comment ''", "start with 3 minvalue 1 nomaxvalue increment by 5 nocycle ENGINE=InnoDB"},
		{"json_safe as int", "start with 3 minvalue 1 maxvalue 2147483647 increment by 5 nocycle json_safe ENGINE=InnoDB"},
		{"outage_cover 60", "start with 3 minvalue 1 maxvalue 2147483647 increment by 5 nocycle json_safe outage_cover 60 ENGINE=InnoDB"},
		{"outage_cover default", "start with 3 minvalue 1 maxvalue 2147483647 increment by 5 nocycle json_safe ENGINE=InnoDB"},
		{"order", "start with 3 minvalue 1 maxvalue 2147483647 increment by 5 nocycle order json_safe ENGINE=InnoDB"},
		{"noorder no json_safe as bigint unsigned increment 1", "start with 3 minvalue 1 nomaxvalue increment by 1 nocycle ENGINE=InnoDB"},
	} {
		if test.options == "increment by 5" {
			exec(t, c, "CREATE SEQUENCE "+name)
		}
		for _, how := range []string{"text", "prepared"} {
			if err := run(t.Context(), c, how, "ALTER SEQUENCE "+name+" "+test.options); err != nil {
				t.Fatalf("%s, %s: %v", test.options, how, err)
			}
		}
		if got, want := createdAs(t, c, "a`b"), "CREATE SEQUENCE "+name+" "+test.want; got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.options, got, want)
		}
	}
	exec(t, c, "SELECT NEXTVAL("+name+")")
	cached := func() string {
		_, rows := table(t, c, "SHOW SEQUENCES LIKE 'a`b'")
		return rows[0][2]
	}
	if cached() == "0" {
		t.Error("nothing is cached after a NEXTVAL")
	}
	exec(t, c, "FLUSH SEQUENCES "+name+", 'A`B'")
	if got := cached(); got != "0" {
		t.Errorf("after FLUSH SEQUENCES: %s numbers are cached, want 0", got)
	}
	exec(t, c, "ALTER SEQUENCE "+name+" RESTART WITH 500")
	if got := value(t, c, "SELECT NEXTVAL("+name+")"); got != "500" {
		t.Errorf("after RESTART WITH 500: got %s", got)
	}
	wantError(t, c, 1210, "ALTER SEQUENCE "+name+" RESTART WITH 400", "400")
	exec(t, c, "ALTER SEQUENCE "+name+" RESTART WITH 400 FORCE")
	if got := value(t, c, "SELECT NEXTVAL("+name+")"); got != "400" {
		t.Errorf("after RESTART WITH 400 FORCE: got %s", got)
	}
}

// Each note has a text in the OK and a count, and SHOW WARNINGS has it.
func TestStatementsAboutSequencesLeaveNotes(t *testing.T) {
	for name, s := range map[string]setup{"with a shard": {}, "keys only": {Shards: noShards}} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, s)
			schema := ""
			if s.Shards != noShards {
				schema = e.Schemas[0]
			}
			c := e.Conn(t, schema, nil)
			exec(t, c, "CREATE SEQUENCE s", "CREATE SEQUENCE gone START 500", "SELECT NEXTVAL('gone')", "DROP SEQUENCE gone")
			for _, test := range []struct{ statement, want string }{
				{"CREATE SEQUENCE IF NOT EXISTS s", "Warning 1050 Sequence 's' already exists and stays as it is"},
				{"ALTER SEQUENCE IF EXISTS nobody CACHE 5", "Warning 4091 Unknown SEQUENCE: 'nobody'"},
				{"DROP SEQUENCE IF EXISTS nobody, neither", "Warning 4091 Unknown SEQUENCE: 'nobody,neither'"},
				{"CREATE SEQUENCE round MAXVALUE 5 CYCLE", "Warning 1105 with CYCLE"},
				{"CREATE SEQUENCE gone", "Warning 1105 sequence begins at "},
				{"CREATE SEQUENCE none", ""},
				{"ALTER SEQUENCE none CACHE 5", ""},
			} {
				exec(t, c, test.statement)
				for range 2 { // SHOW WARNINGS does not clear them
					_, rows := table(t, c, "SHOW WARNINGS")
					got := ""
					for _, row := range rows {
						got += strings.Join(row, " ")
					}
					if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
						t.Errorf("%s: got %q, want %q", test.statement, got, test.want)
					}
				}
			}
			exec(t, c, "CREATE SEQUENCE IF NOT EXISTS s", "SHOW SEQUENCES")
			if _, rows := table(t, c, "SHOW WARNINGS"); len(rows) != 0 {
				t.Errorf("after a statement without a note: got %q", rows)
			}
			if s.Shards == noShards {
				return
			}
			for _, test := range []struct{ statement, counts string }{
				{"CREATE SEQUENCE IF NOT EXISTS s", "1 0"}, {"CREATE SEQUENCE another", "0 0"}, {"SHOW SEQUENCES", "0 -1"},
			} {
				exec(t, c, test.statement)
				if got := value(t, c, "SELECT CONCAT(@@warning_count, ' ', ROW_COUNT())"); got != test.counts {
					t.Errorf("%s: @@warning_count and ROW_COUNT(): got %s, want %s", test.statement, got, test.counts)
				}
			}
		})
	}
	e := newEnv(t, setup{})
	out := e.CLI(t, e.Addr(), e.Schemas[0], "CREATE SEQUENCE s;\nCREATE SEQUENCE IF NOT EXISTS s;\nSELECT @@warning_count, ROW_COUNT();\n")
	for _, want := range []string{"Query OK, 0 rows affected, 1 warning", "already exists"} {
		if !strings.Contains(out, want) {
			t.Errorf("the command-line client does not print %q:\n%s", want, out)
		}
	}
}

// A server would make a sequence of its own, or fail in another way on each.
func TestStatementsAboutSequencesStandAlone(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	for _, text := range []string{
		"CREATE SEQUENCE s; SELECT 1", "SELECT 1; CREATE SEQUENCE s", "CREATE SEQUENCE a; CREATE SEQUENCE b", "DROP SEQUENCE IF EXISTS s; SELECT 1",
		"PREPARE p FROM 'CREATE SEQUENCE s'", "EXECUTE IMMEDIATE 'ALTER SEQUENCE s RESTART'", "PREPARE p FROM 'SHOW SEQUENCES'",
		"SEQPROXY ADD SEQUENCE SERVER 'a:1'; SELECT 1", "SELECT 1; SHOW SEQPROXY SEQUENCE SERVERS",
	} {
		wantError(t, c, 1235, text, "a statement about sequences", "send it alone")
	}
	exec(t, c, "CREATE SEQUENCE s;", "/* alone */ DROP SEQUENCE s; ")
}

// Statements that MariaDB has, too, go to the server where the sequence is its own.
func TestSequencesOfTheServersOwnAreAdministeredThere(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.Unknown = proxy.UnknownRelay }})
	e.Servers[0].OnMariaDB(t, "MySQL has no sequences")
	createSequence(t, e, "ours")
	c, direct := e.Conn(t, e.Schemas[0], nil), e.DirectConn(t, 0, e.Schemas[0], nil)
	exec(t, direct, "CREATE SEQUENCE theirs")
	for _, how := range []string{"text", "prepared"} {
		if err := run(t.Context(), c, how, "ALTER SEQUENCE theirs CACHE 7"); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
	if _, rows := table(t, c, "SHOW CREATE SEQUENCE theirs"); !strings.Contains(rows[0][1], "cache 7") {
		t.Errorf("got %q, want cache 7", rows)
	}
	if _, rows := table(t, direct, "SHOW CREATE SEQUENCE theirs"); !strings.Contains(rows[0][1], "cache 7") {
		t.Errorf("got %q, want cache 7", rows)
	}
	exec(t, c, "ALTER SEQUENCE ours CACHE 8")
	if _, rows := table(t, c, "SHOW CREATE SEQUENCE ours"); !strings.Contains(rows[0][1], "cache 8") {
		t.Errorf("got %q, want cache 8", rows)
	}
	exec(t, c, "DROP SEQUENCE theirs")
	wantError(t, direct, 4091, "DROP SEQUENCE theirs")
}
