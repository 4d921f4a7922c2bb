package proxy_test

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/sequence/kind"
	"seqproxy/test/mysqltest"
)

// clausesOfKinds are those of CREATE SEQUENCE, with a check of each.
var clausesOfKinds = []string{"bit_reversed", "bit_reversed json_safe", "rotate 1 digits 12", "shard bits 4", "shard bits 4 json_safe"}

func keyOf(t *testing.T, k kind.Kind, text string) (counter uint64) {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	counter, _, ok := k.Counter(n)
	if err != nil || !ok {
		t.Errorf("%v: %q is no key of it", k, text)
	}
	return counter
}

// A key of any kind is LAST_INSERT_ID(key), in each way that a number may be asked for.
func TestKeysOfEachKindAreInsertIDs(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0])
	for i, clause := range clausesOfKinds {
		t.Run(clause, func(t *testing.T) {
			k, err := kind.Parse(clause)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("k%d", i)
			e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE "+name+" (id BIGINT PRIMARY KEY, n INT)", "CREATE TABLE copy_of_"+name+" (id BIGINT PRIMARY KEY, n INT)")
			c := e.Conn(t, e.Schemas[0], nil)
			exec(t, c, "CREATE SEQUENCE "+name+" NOCACHE "+clause+" OWNED BY "+name+".id")
			if got := createOf(t, e, name); !strings.Contains(got, " "+clause+" owned by") {
				t.Errorf("SHOW CREATE SEQUENCE prints %s", got)
			}
			last := uint64(0)
			next := func(what, text string) {
				t.Helper()
				if n := keyOf(t, k, text); n != last+1 {
					t.Errorf("%s: the key %s has the counter %d, want %d", what, text, n, last+1)
				} else {
					last = n
				}
			}
			lastID := func(what, want string) {
				t.Helper()
				if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != want {
					t.Errorf("%s: LAST_INSERT_ID() is %s, want %s", what, got, want)
				}
			}
			got := value(t, c, "SELECT NEXTVAL('"+name+"')")
			next("SELECT", got)
			lastID("SELECT", got)
			insert := func(what, statement string, args ...any) {
				t.Helper()
				r, err := c.ExecContext(t.Context(), statement, args...)
				if err != nil {
					t.Errorf("%s: %v", statement, err)
					return
				}
				id, _ := r.LastInsertId()
				text := strconv.FormatInt(id, 10)
				next(what, text)
				lastID(what, text)
				if got := value(t, c, "SELECT COUNT(*) FROM "+name+" WHERE id = "+text); got != "1" {
					t.Errorf("%s: %s rows have the key %s", what, got, text)
				}
			}
			insert("INSERT", "INSERT INTO "+name+" VALUES (NEXTVAL('"+name+"'), 1)")
			insert("a key that is filled in", "INSERT INTO "+name+" (n) VALUES (2)")
			insert("a prepared INSERT", "INSERT INTO "+name+" VALUES (NEXTVAL('"+name+"'), ?)", 3)
			insert("a prepared key that is filled in", "INSERT INTO "+name+" (n) VALUES (?)", 4)

			// Each row has a key of its own.
			exec(t, c, "INSERT INTO "+name+" VALUES (NEXTVAL('"+name+"'), 10), (NEXTVAL('"+name+"'), 11), (NEXTVAL('"+name+"'), 12)")
			for n := range 3 {
				next("several rows", value(t, c, fmt.Sprintf("SELECT id FROM %s WHERE n = %d", name, 10+n)))
			}
			both := value(t, c, "SELECT CONCAT(NEXTVAL('"+name+"'), ' ', NEXTVAL('"+name+"'))")
			first, second, _ := strings.Cut(both, " ")
			next("two in one SELECT", first)
			next("two in one SELECT", second)

			several, counted := "INSERT INTO "+name+" (n) VALUES (20), (21)", "INSERT INTO copy_of_"+name+" SELECT NEXTVAL('"+name+"'), n FROM "+name+" LIMIT 2"
			if k.Steady() {
				r, err := c.ExecContext(t.Context(), several)
				if err != nil {
					t.Fatal(err)
				}
				id, _ := r.LastInsertId()
				next("several rows that are filled in", strconv.FormatInt(id, 10))
				next("several rows that are filled in", value(t, c, fmt.Sprintf("SELECT id FROM %s WHERE n = 21 AND id = %d", name, id+1)))
				exec(t, c, counted)
				for _, id := range names(t, c, "SELECT id FROM copy_of_"+name) {
					if n := keyOf(t, k, id); n <= last {
						t.Errorf("INSERT ... SELECT: the counter %d was given before", n)
					}
				}
			} else {
				for _, statement := range []string{several, counted} {
					wantError(t, c, 1235, statement, "NEXTVAL in each row")
				}
			}
			wantError(t, c, 1235, "SELECT NEXTVAL('"+name+"', 2)", "NEXTVAL with a count", k.String())
			wantError(t, c, 1235, "SELECT SETVAL('"+name+"', 70)", "SETVAL", "RESTART WITH")
			wantError(t, c, 1235, "ALTER SEQUENCE "+name+" INCREMENT BY 2", "INCREMENT BY 2", `"`+name+`"`)
			wantError(t, c, 1235, "ALTER SEQUENCE "+name+" BIT_REVERSED", "never changes")
			wantError(t, c, 1235, "CREATE OR REPLACE SEQUENCE "+name, "another kind")
			wantError(t, c, 1050, "CREATE SEQUENCE "+name, name)
			if got := value(t, c, "SELECT COUNT(*) FROM "+name+" WHERE id = 0"); got != "0" {
				t.Errorf("%s rows have no key", got)
			}
			if _, rows := table(t, c, "CHECK SEQUENCE "+name); !strings.Contains(fmt.Sprint(rows), "OK") {
				t.Errorf("CHECK SEQUENCE says %v", rows)
			}
			_, rows := table(t, c, "SHOW SEQUENCES LIKE '"+name+"'")
			if len(rows) != 1 || rows[0][0] != name || rows[0][len(rows[0])-2] != k.String() {
				t.Errorf("SHOW SEQUENCES lists %v", rows)
			}
			exec(t, c, "DROP SEQUENCE "+name)
			wantError(t, c, 4091, "SELECT NEXTVAL('"+name+"')", "'"+name+"'")
			wantError(t, c, 1235, "CREATE SEQUENCE "+name, "another kind")
			exec(t, c, "CREATE SEQUENCE "+name+" "+clause)
			if n := keyOf(t, k, value(t, c, "SELECT NEXTVAL('"+name+"')")); n <= last {
				t.Errorf("after DROP and CREATE: got the counter %d again", n)
			}
		})
	}
}

// CHECK and REPAIR compare the counters of keys, which the server computes from the column.
func TestCHECKAndREPAIRCompareCounters(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	for i, clause := range clausesOfKinds {
		k, err := kind.Parse(clause)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("k%d", i)
		e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE "+name+" (id BIGINT PRIMARY KEY)",
			fmt.Sprintf("INSERT INTO %s VALUES (-5), (%d), (%d), (%d)", name, k.Key(900, 3), k.Key(7, 1), k.Key(123, 2)))
		exec(t, c, "CREATE SEQUENCE "+name+" NOCACHE "+clause)
		if n := keyOf(t, k, value(t, c, "SELECT NEXTVAL('"+name+"')")); n != 1 {
			t.Errorf("%s begins at %d", clause, n)
		}
		exec(t, c, "ALTER SEQUENCE "+name+" OWNED BY "+name+".id")
		if n := keyOf(t, k, value(t, c, "SELECT NEXTVAL('"+name+"')")); n != 901 {
			t.Errorf("%s with OWNED BY: got the next counter %d, want 901", clause, n)
		}
		e.Servers[0].Exec(t, "USE "+e.Schemas[0], fmt.Sprintf("INSERT INTO %s VALUES (%d)", name, k.Key(5000, 0)))
		if _, rows := table(t, c, "CHECK SEQUENCE "+name); !strings.Contains(said(t, rows, "check"), "counters go up to 5000, above the counter") {
			t.Errorf("%s: CHECK says %v", clause, rows)
		}
		if _, rows := table(t, c, "REPAIR SEQUENCE "+name); !strings.Contains(said(t, rows, "repair"), "to 5000") {
			t.Errorf("%s: REPAIR says %v", clause, rows)
		}
		if n := keyOf(t, k, value(t, c, "SELECT NEXTVAL('"+name+"')")); n != 5001 {
			t.Errorf("%s after REPAIR: got the next counter %d, want 5001", clause, n)
		}
	}
}

func TestBadKindsAreRefused(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE narrow (id INT PRIMARY KEY)", "CREATE TABLE words (id VARCHAR(20) PRIMARY KEY)",
		"CREATE TABLE bytes (id BINARY(16) PRIMARY KEY)",
		"CREATE TABLE far (id BIGINT PRIMARY KEY)", "INSERT INTO far VALUES (1), (9000000000000000001)")
	c := e.Conn(t, e.Schemas[0], nil)
	for _, test := range []struct {
		code  uint16
		text  string
		words []string
	}{
		{1210, "SHARD BITS 16", []string{"SHARD BITS 16: want 1 to 15"}},
		{1210, "SHARD BITS 0", []string{"SHARD BITS 0: want 1 to 15"}},
		{1210, "ROTATE 1 DIGITS 19", []string{"DIGITS 19: want 2 to 18"}},
		{1210, "ROTATE 1 DIGITS 16 JSON_SAFE", []string{"2 to 15 with JSON_SAFE"}},
		{1210, "ROTATE 9 DIGITS 9", []string{"ROTATE 9: want 1 to 8"}},
		{1064, "ROTATE 1", []string{"needs DIGITS w"}},
		{1064, "ROTATE DIGITS 9", []string{"whole number"}},
		{1064, "SHARD 5", []string{"needs BITS s"}},
		{1064, "DIGITS 5", []string{"DIGITS, which stands behind a kind of keys, as in ROTATE 1 DIGITS 12"}},
		{1064, "EPOCH '2026-01-01'", []string{"EPOCH, which stands behind", "SNOWFLAKE EPOCH '2026-01-01'"}},
		{1064, "TIME ZONE 'UTC'", []string{"TIME, which stands behind", "FORMAT '{yyyyMMdd}{n:6}' TIME ZONE"}},
		{1064, "RESET DAILY", []string{"RESET, which stands behind", "FORMAT"}},
		{1064, "VERSION 4", []string{"UUID VERSION 4"}},
		{1235, "BIT_REVERSED SHARD BITS 5", []string{"SHARD BITS beside BIT_REVERSED", "one kind", "leave one of them out"}},
		{1225, "BIT_REVERSED BIT_REVERSED", []string{"BIT_REVERSED", "twice"}},
		{1210, "FORMAT 'PO-{yyMMdd}-{n:6}' RESET DAILY", []string{"RESET DAILY", "lacks yyyy", "yy comes again"}},
		{1210, "FORMAT '{n:6}' RESET YEARLY", []string{"RESET YEARLY", "lacks yyyy"}},
		{1064, "FORMAT '{yyyy}{n:6}' RESET HOURLY", []string{"RESET needs DAILY, MONTHLY or YEARLY"}},
		{1225, "FORMAT '{yyyy}{n:6}' RESET YEARLY RESET YEARLY", []string{"RESET", "twice"}},
		{1064, "FORMAT '{yyyy}{n:6}' RESET", []string{"RESET needs DAILY, MONTHLY or YEARLY"}},
		{1064, "RESET DAILY FORMAT '{yyyyMMdd}{n:6}'", []string{"RESET, which stands behind", "FORMAT"}},
		{1064, "BIT_REVERSED RESET DAILY", []string{"RESET, which stands behind", "FORMAT"}},
		{1235, "FORMAT 'PO-{yyyyMMdd}-{n:6}' RESET DAILY ORDER", []string{"ORDER", "RESET DAILY", "NOCACHE"}},
		{1235, "FORMAT 'PO-{yyyyMMdd}-{n:6}' RESET DAILY INCREMENT BY 2", []string{"INCREMENT BY 2"}},
		{1235, "FORMAT 'PO-{yyyyMMdd}-{n:6}' RESET DAILY CYCLE", []string{"CYCLE"}},
		{4085, "FORMAT '{yyyy}{n:2}' RESET YEARLY START WITH 100", []string{"START WITH 100", "99"}},
		{1210, "UUID VERSION 5", []string{"UUID VERSION 5: want 7", "or 4"}},
		{1210, "UUID START WITH 5", []string{"START 5", "leave it out"}},
		{1210, "UUID CACHE 5", []string{"CACHE 5", "leave it out"}},
		{1210, "UUID AS BIGINT", []string{"AS goes with", "leave it out"}},
		{1235, "UUID ORDER", []string{"ORDER", "no counter"}},
		{1235, "UUID JSON_SAFE", []string{"JSON_SAFE", "leave it out"}},
		{1235, "UUID FORMAT '{n:6}'", []string{"FORMAT beside UUID", "one kind"}},
		{1210, "UUID SKIP RANGE 1 TO 9", []string{"goes with BIT_REVERSED and ROTATE"}},
		{1210, "FORMAT 'PO'", []string{"FORMAT 'PO'", "no counter", "want {n:6} or {n}"}},
		{1210, "FORMAT '{n:6}{QQ}'", []string{"'QQ' is no part of a date"}},
		{1210, "FORMAT '{n}' WIDEN", []string{"grows without WIDEN"}},
		{1210, "FORMAT '{n:6}' TIME ZONE 'Mars'", []string{"TIME ZONE 'Mars'", "'Asia/Shanghai'"}},
		{1210, "FORMAT 'it''s {n:6}'", []string{"printable ASCII"}},
		{1210, "FORMAT '编号{n:6}'", []string{"printable ASCII"}},
		{1210, "FORMAT 'a{n:6}' AS INT", []string{"AS goes with"}},
		{1210, "AS INT FORMAT '{n:12}'", []string{"AS holds up to 2147483647"}},
		{4085, "FORMAT '{n:3}' START WITH 1000", []string{"999"}},
		{4085, "FORMAT '{n:3}' MAXVALUE 1000", []string{"999"}},
		{1064, "FORMAT", []string{"FORMAT needs a string"}},
		{1064, "FORMAT '{n:6}' TIME 'UTC'", []string{"TIME needs ZONE"}},
		{1064, "FORMAT '{n:6}' TIME ZONE UTC", []string{"TIME ZONE needs a string"}},
		{1225, "FORMAT '{n:6}' WIDEN WIDEN", []string{"WIDEN", "twice"}},
		{1210, "UUID OWNED BY narrow.id", []string{"column 'narrow.id'", "of the type int", "CHAR(36)"}},
		{1210, "UUID OWNED BY words.id", []string{"varchar(20)", "CHAR(36)"}},
		{1210, "UUID OWNED BY bytes.id", []string{"binary(16)", "CHAR(36)"}},
		{1210, "UUID BINARY OWNED BY words.id", []string{"BINARY(16)"}},
		{1210, "FORMAT 'this-is-too-long-{n:6}' OWNED BY words.id", []string{"varchar(20)", "VARCHAR(23)"}},
		{1210, "FORMAT '{n:12}' OWNED BY narrow.id", []string{"2147483647", "wider"}},
		{1054, "UUID OWNED BY words.nothing", []string{"words.nothing"}},
		{1210, "SNOWFLAKE EPOCH '2999-01-01'", []string{"EPOCH '2999-01-01'", "has passed"}},
		{1210, "SNOWFLAKE EPOCH 'soon'", []string{"EPOCH 'soon'", "'2026-01-01'"}},
		{1210, "SNOWFLAKE TICK '2s'", []string{"TICK '2s'", "'1ms' to '1s'"}},
		{1210, "SNOWFLAKE TIME BITS 42", []string{"TIME BITS 42", "add up to 64", "at most 63"}},
		{1210, "SNOWFLAKE WORKER BITS 300", []string{"WORKER BITS 300", "1 to 16"}},
		{1210, "SNOWFLAKE COUNTER BITS 0", []string{"COUNTER BITS 0", "1 to 22"}},
		{1210, "SNOWFLAKE EPOCH '2020-01-01' TIME BITS 30", []string{"TIME BITS 30", "ended at 2020-01-13"}},
		{1210, "SNOWFLAKE JSON_SAFE", []string{"at most 53", "WORKER BITS 5"}},
		{1225, "SNOWFLAKE TICK '1ms' TICK '1ms'", []string{"TICK", "twice"}},
		{1225, "SNOWFLAKE TIME BITS 41 TIME BITS 41", []string{"TIME BITS", "twice"}},
		{1064, "SNOWFLAKE EPOCH 2026", []string{"EPOCH needs a string"}},
		{1064, "SNOWFLAKE WORKER 10", []string{"WORKER BITS n needs BITS"}},
		{1235, "SNOWFLAKE BIT_REVERSED", []string{"BIT_REVERSED beside SNOWFLAKE"}},
		{1235, "SNOWFLAKE NOCACHE", []string{"CACHE or NOCACHE", "OUTAGE_COVER"}},
		{1235, "SNOWFLAKE START WITH 5", []string{"START, MINVALUE or MAXVALUE", "the time"}},
		{1235, "SNOWFLAKE ORDER", []string{"ORDER", "leave it out"}},
		{1210, "SNOWFLAKE SKIP RANGE 1 TO 5", []string{"goes with BIT_REVERSED and ROTATE"}},
		{1210, "SNOWFLAKE OWNED BY narrow.id", []string{"2147483647", "wider"}},
		{1210, "SNOWFLAKE OWNED BY far.id", []string{"column 'far.id'", "would be of 2093-12-30", "EPOCH", "DELETE the row"}},
		{1210, "BIT_REVERSED SKIP RANGE 9 TO 1", []string{"SKIP RANGE 9 TO 1", "the lower one first"}},
		{1210, "SHARD BITS 5 SKIP RANGE 1 TO 9", []string{"goes with BIT_REVERSED and ROTATE"}},
		{1210, "SKIP RANGE 1 TO 9", []string{"goes with BIT_REVERSED and ROTATE"}},
		{1064, "BIT_REVERSED SKIP RANGE 1", []string{"needs TO b"}},
		{1064, "BIT_REVERSED SKIP 1", []string{"needs RANGE a TO b"}},
		{1235, "BIT_REVERSED INCREMENT BY 2", []string{"INCREMENT BY 2", "BIT_REVERSED"}},
		{1235, "SHARD BITS 5 CYCLE", []string{"CYCLE", "same keys"}},
		{4085, "SHARD BITS 5 MAXVALUE 288230376151711744", []string{"288230376151711743"}},
		{4085, "ROTATE 1 DIGITS 3 START WITH 1000", []string{"999"}},
		{1210, "AS INT BIT_REVERSED", []string{"AS"}},
		{1210, "BIT_REVERSED OWNED BY narrow.id", []string{"2147483647", "wider"}},
		{1210, "BIT_REVERSED OWNED BY far.id", []string{"keys up to 9000000000000000001", "not of kind BIT_REVERSED", "less than half"}},
		{1105, "BIT_REVERSED OWNED BY words.id", []string{"no integer", "want a BIGINT"}},
	} {
		wantError(t, c, test.code, "CREATE SEQUENCE bad "+test.text, test.words...)
	}
	wantError(t, c, 1210, "CREATE SEQUENCE `a#counter`", "#counter")
	wantError(t, c, 4091, "SELECT NEXTVAL('bad')")
	exec(t, c, "CREATE SEQUENCE good AS BIGINT BIT_REVERSED") // its keys fit
	if got := value(t, c, "SELECT NEXTVAL('good')"); got != "4611686018427387904" {
		t.Errorf("the first key is %s", got)
	}
}

// A dump of the proxy's sequences makes no plain sequence on a server without the proxy, or with a
// client that strips comments.
func TestAServerMakesNoPlainSequenceOfAKind(t *testing.T) {
	e := newEnv(t, setup{})
	c, direct := e.Conn(t, e.Schemas[0], nil), e.DirectConn(t, 0, e.Schemas[0], nil)
	for i, clause := range []string{
		"BIT_REVERSED", "BIT_REVERSED JSON_SAFE", "BIT_REVERSED SKIP RANGE 1 TO 9", "ROTATE 1 DIGITS 9", "SHARD BITS 4",
		"FORMAT 'PO-{n:6}'", "FORMAT 'PO-{yyyyMMdd}-{n:6}' TIME ZONE 'Asia/Shanghai' RESET DAILY", "UUID", "UUID VERSION 4 BINARY", "SNOWFLAKE",
	} {
		name := fmt.Sprintf("k%d", i)
		exec(t, c, "CREATE SEQUENCE "+name+" "+clause)
		text := createOf(t, e, name)
		if !strings.HasPrefix(text, "CREATE SEQUENCE `"+name+"`") || strings.Contains(text, "/*") || strings.Contains(text, "--") {
			t.Errorf("%s: SHOW CREATE SEQUENCE prints %s", clause, text)
		}
		wantError(t, direct, 1064, text)
	}
}

// A refusal names the sequence, what is not done, and the way out.
func TestWhatAKindRefusesHasAWayOut(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE r (id BIGINT PRIMARY KEY, n INT)", "CREATE TABLE f (id VARCHAR(40) PRIMARY KEY, n INT)")
	c := e.Conn(t, e.Schemas[0], nil)
	kinds := map[string]string{
		"r": "BIT_REVERSED OWNED BY r.id", "o": "ROTATE 1 DIGITS 6", "h": "SHARD BITS 4", "f": "FORMAT 'PO-{n:6}' OWNED BY f.id", "d": "FORMAT '{n:12}'",
		"s": "SNOWFLAKE", "u": "UUID", "b": "UUID VERSION 4 BINARY",
	}
	for name, clause := range kinds {
		exec(t, c, "CREATE SEQUENCE "+name+" "+clause)
		named := fmt.Sprintf("%q, a sequence of kind %s", name, strings.Fields(clause)[0])
		wantError(t, c, 1235, "SELECT NEXTVAL('"+name+"', 3)", named, "NEXTVAL with a count", "write NEXTVAL in each row")
		for _, test := range []struct{ what, said string }{
			{"INCREMENT BY 2", "INCREMENT BY 2"}, {"CYCLE", "CYCLE"},
		} {
			wantError(t, c, 1235, "ALTER SEQUENCE "+name+" "+test.what, named, test.said, "leave it out")
		}
		for _, what := range []string{
			"BIT_REVERSED", "ROTATE 2 DIGITS 6", "SHARD BITS 5", "FORMAT 'x{n}'", "UUID VERSION 4", "SNOWFLAKE", "SKIP RANGE 1 TO 9",
			"DIGITS 7", "BITS 5", "WIDEN", "RESET DAILY", "TIME ZONE 'UTC'", "EPOCH '2020-01-01'", "TICK '1s'", "TIME BITS 40", "WORKER BITS 4", "COUNTER BITS 4", "VERSION 4", "BINARY",
		} {
			wantError(t, c, 1235, "ALTER SEQUENCE "+name+" "+what, strings.Fields(what)[0], "in ALTER SEQUENCE", "create a sequence of another name")
		}
		setval := map[byte]string{'s': "its keys begin with the time", 'u': "its keys are of no counter", 'b': "its keys are of no counter"}[name[0]]
		if setval == "" {
			setval = "ALTER SEQUENCE ... RESTART WITH n raises its counter"
		}
		wantError(t, c, 1235, "SELECT SETVAL('"+name+"', 5)", named, "SETVAL", setval)
		wantError(t, c, 1235, "CREATE OR REPLACE SEQUENCE "+name+" ROTATE 2 DIGITS 7", named, "another kind", "create a sequence of another name")
	}
	for _, what := range []string{"RESTART WITH 5", "START WITH 5", "MINVALUE 5", "MAXVALUE 5", "CACHE 5", "OUTAGE_COVER 5", "ORDER"} {
		wantError(t, c, 1235, "ALTER SEQUENCE u "+what, `"u", a sequence of kind UUID VERSION 7`, strings.Fields(what)[0], "of no counter; leave it out")
	}
	for _, what := range []string{"RESTART WITH 5", "START WITH 5", "MINVALUE 5", "MAXVALUE 5", "CACHE 5", "ORDER"} {
		wantError(t, c, 1235, "ALTER SEQUENCE s "+what, `"s", a sequence of kind SNOWFLAKE`, strings.Fields(what)[0], "leave it out")
	}
	wantError(t, c, 4085, "ALTER SEQUENCE f MAXVALUE 1000000", `"f"`, "MAXVALUE 1000000 is above 999999")
	wantError(t, c, 1210, "ALTER SEQUENCE f RESTART WITH 1000000", `sequence "f"`, "RESTART WITH 1000000", "the maximum 999999")
	exec(t, c, "ALTER SEQUENCE r RESTART WITH 100")
	wantError(t, c, 1210, "ALTER SEQUENCE r RESTART WITH 50", `sequence "r": RESTART WITH 50 is not above 99`, "ALTER SEQUENCE `r` RESTART WITH 50 FORCE")
	wantError(t, c, 1235, "INSERT INTO r (n) VALUES (1), (2)", "several rows into r", "write NEXTVAL in each row", `multi_row = "first"`)
	wantError(t, c, 1235, "INSERT INTO f (n) SELECT 1", "INSERT ... SELECT into f", "write NEXTVAL in each row of VALUES")
	for _, name := range []string{"f", "u"} {
		wantError(t, c, 1235, "SELECT LASTVAL('"+name+"')", "LASTVAL of sequence "+name, "keep the key that NEXTVAL gave")
		wantError(t, c, 1235, "SELECT NEXTVAL('"+name+"') FROM r", "sequence "+name, "take the keys one by one")
	}
	exec(t, c, "CREATE SEQUENCE unused FORMAT 'a{n:6}'", "DROP SEQUENCE unused")
	wantError(t, c, 1235, "CREATE SEQUENCE unused FORMAT 'b{n:6}'", "another kind", "create a sequence of another name")
	exec(t, c, "CREATE SEQUENCE one FORMAT '{n:1}' START WITH 9", "SELECT NEXTVAL('one')")
	wantError(t, c, 4084, "SELECT NEXTVAL('one')", "'one' has run out")
}

// The statements of a ticket server are refused, and find no row where they go directly to the
// server.
func TestATicketIsNoKeyOfAKind(t *testing.T) {
	var schema string
	e := newEnv(t, setup{
		Sequence: func(o *sequence.Options) { schema = o.Servers[0].Database },
		Proxy:    func(o *proxy.Options) { o.Tickets = []proxy.TicketTable{{Schema: schema, Table: "sequence"}} },
	})
	c := e.Conn(t, schema, nil)
	exec(t, c, "CREATE SEQUENCE photos BIT_REVERSED")
	update := "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'"
	wantError(t, c, 1235, update, "a ticket server", "SELECT NEXTVAL")
	wantError(t, c, 1235, "INSERT INTO sequence (name) VALUES ('photos') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", "SELECT NEXTVAL")
	r, err := e.DirectConn(t, 0, schema, nil).ExecContext(t.Context(), update)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := r.RowsAffected(); n != 0 {
		t.Errorf("got %d rows, want 0", n)
	}
	if got := value(t, c, "SELECT NEXTVAL('photos')"); got != "4611686018427387904" {
		t.Errorf("the first key is %s", got)
	}
}

// The proxy answers SELECT SEQUENCE_DECODE, as a text and prepared.
func TestAKeyIsDecoded(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE plain", "CREATE SEQUENCE rotated ROTATE 1 DIGITS 6", "CREATE SEQUENCE sharded SHARD BITS 5", "CREATE SEQUENCE tweets SNOWFLAKE EPOCH '2010-11-04T01:42:54.657Z'")
	for query, want := range map[string]string{
		"SELECT SEQUENCE_DECODE('plain', 70)":                 "[70 NULL NULL NULL NULL NULL]",
		"select sequence_decode(`rotated`, 100002)":           "[21 NULL NULL ROTATE 1 DIGITS 6 NULL NULL]",
		"SELECT\nSequence_Decode ('rotated', 1000000);":       "[NULL NULL NULL ROTATE 1 DIGITS 6 NULL NULL]",
		"SELECT SEQUENCE_DECODE(sharded, 864691128455135233)": "[1 3 NULL SHARD BITS 5 NULL NULL]",
		"SELECT SEQUENCE_DECODE('rotated', '100002')":         "[21 NULL NULL ROTATE 1 DIGITS 6 NULL NULL]",
		"SELECT SEQUENCE_DECODE('rotated', 'x')":              "[NULL NULL NULL ROTATE 1 DIGITS 6 NULL NULL]",
		"SELECT SEQUENCE_DECODE('rotated', 0)":                "[NULL NULL NULL ROTATE 1 DIGITS 6 NULL NULL]",
		"SELECT SEQUENCE_DECODE('tweets', 1541815603606036487)": "[7 NULL 2022-06-28 16:07:40.105 SNOWFLAKE EPOCH '2010-11-04T01:42:54.657Z' TICK '1ms' " +
			"TIME BITS 41 WORKER BITS 10 COUNTER BITS 12 378 NULL]",
	} {
		columns, rows := table(t, c, query)
		if len(rows) != 1 || fmt.Sprint(rows[0]) != want || fmt.Sprint(columns) != "[counter shard time kind worker period]" {
			t.Errorf("%s: got %v %v, want %s", query, columns, rows, want)
		}
	}
	p, err := c.PrepareContext(t.Context(), "SELECT SEQUENCE_DECODE('rotated', 100002)")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var counter uint64
	var shard, moment, clause, worker, period any
	if err := p.QueryRowContext(t.Context()).Scan(&counter, &shard, &moment, &clause, &worker, &period); err != nil || counter != 21 {
		t.Errorf("prepared: got %d, %v", counter, err)
	}
	wantError(t, c, 4091, "SELECT SEQUENCE_DECODE('nobody', 5)", "nobody")
	wantError(t, c, 1235, "SELECT SEQUENCE_DECODE('plain', id) FROM t", "whole number")
	wantError(t, c, 1235, "SELECT SEQUENCE_DECODE('plain', 5), 6", "beside")
	wantError(t, c, 1235, "SELECT SEQUENCE_DECODE('plain', 5) AS n", "beside")
	wantError(t, c, 1064, "SELECT SEQUENCE_DECODE('plain')", "a name and a key")
}

// rangedTable is a table in eight ranges of its key, and the kind that makes its keys.
type rangedTable struct {
	clause      string
	size        uint64 // of a range
	least, most int    // rows in one range, of 800
}

// ranges is the number of ranges of a rangedTable, and connections that of clients that insert into
// it.
const ranges, connections = 8, 16

var rangedTables = []rangedTable{
	{"", 1 << 60, 0, 800},
	{"bit_reversed", 1 << 60, 90, 110},
	{"rotate 2 digits 12", 125_000_000_000, 70, 130},
	{"rotate 1 digits 12", 125_000_000_000, 70, 170},
	{"shard bits 6", 1 << 60, 50, 150},
	{"uuid version 4", 0, 50, 150},
}

// create makes the table and its sequence.
func (r *rangedTable) create(t testing.TB, e *env, name string) {
	t.Helper()
	create := "CREATE TABLE " + name + " (id BIGINT PRIMARY KEY, n INT) PARTITION BY RANGE (id) ("
	bound := func(p int) string { return fmt.Sprint(uint64(p) * r.size) }
	if r.size == 0 {
		create = "CREATE TABLE " + name + " (id CHAR(36) CHARACTER SET ascii PRIMARY KEY, n INT) PARTITION BY RANGE COLUMNS (id) ("
		bound = func(p int) string { return fmt.Sprintf("'%x'", 2*p) }
	}
	for p := range ranges - 1 {
		create += fmt.Sprintf("PARTITION p%d VALUES LESS THAN (%s), ", p, bound(p+1))
	}
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], create+"PARTITION p7 VALUES LESS THAN (MAXVALUE))")
	if _, err := e.DB(t, e.Schemas[0], nil).ExecContext(context.Background(), "CREATE SEQUENCE "+name+" "+r.clause); err != nil {
		t.Fatal(err)
	}
}

// fill inserts rows on all connections while more returns true, and returns the number of rows in
// each range.
func (r *rangedTable) fill(t testing.TB, e *env, name string, more func(row int) bool) (rows [ranges]int) {
	t.Helper()
	db := e.DB(t, e.Schemas[0], nil)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			for row := 0; more(row); row++ {
				if _, err := db.ExecContext(context.Background(), "INSERT INTO "+name+" VALUES (NEXTVAL('"+name+"'), 1)"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	for p := range rows {
		if err := db.QueryRowContext(context.Background(), fmt.Sprintf("SELECT COUNT(*) FROM %s PARTITION (p%d)", name, p)).Scan(&rows[p]); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// Kinds that spread put rows into all ranges of a table, plain sequences into one.
func TestKindsSpreadRowsOverRanges(t *testing.T) {
	e := newEnv(t, setup{})
	for i, r := range rangedTables {
		name := fmt.Sprintf("t%d", i)
		r.create(t, e, name)
		rows := r.fill(t, e, name, func(row int) bool { return row < 800/connections })
		for _, n := range rows {
			if n < r.least || n > r.most {
				t.Errorf("%q has %d rows in a range, want %d to %d", r.clause, n, r.least, r.most)
			}
		}
		t.Logf("%-20s %v", r.clause, rows)
		if r.clause == "" && rows[0] != 800 {
			t.Errorf("a plain sequence fills the ranges with %v rows, want one of them", rows)
		}
	}
}

// How many rows a second go to each range, for docs/kinds.md.
func BenchmarkRowsOverRanges(b *testing.B) {
	e := newEnv(b, setup{})
	for i, r := range rangedTables {
		b.Run(cmp.Or(r.clause, "plain"), func(b *testing.B) {
			name := fmt.Sprintf("t%d", i)
			r.create(b, e, name)
			begin := time.Now()
			rows := r.fill(b, e, name, func(int) bool { return time.Since(begin) < 4*time.Second })
			took := time.Since(begin).Seconds()
			all := 0
			for p, n := range rows {
				all += n
				b.ReportMetric(float64(n)/took, fmt.Sprintf("p%d/s", p))
			}
			b.ReportMetric(float64(all)/took, "rows/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// A table that has plain keys gets a kind, which passes over them.
func TestATableWithKeysGetsAKind(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	e.Servers[0].Exec(t, "USE "+e.Schemas[0])
	warning := func() string {
		_, rows := table(t, c, "SHOW WARNINGS")
		return fmt.Sprint(rows)
	}
	insert := func(name string, rows int) {
		t.Helper()
		for range rows {
			exec(t, c, "INSERT INTO "+name+" (n) VALUES (0)")
		}
	}
	create := func(name string) {
		e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE "+name+" (id BIGINT PRIMARY KEY, n INT)",
			"INSERT INTO "+name+" SELECT seq, 1 FROM (WITH RECURSIVE s AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM s WHERE seq < 990) SELECT seq FROM s) AS s")
	}
	create("reversed")
	exec(t, c, "CREATE SEQUENCE reversed BIT_REVERSED OWNED BY reversed.id")
	if got := warning(); !strings.Contains(got, "does not give the keys up to 990") {
		t.Errorf("CREATE says %s", got)
	}
	if got := createOf(t, e, "reversed"); !strings.Contains(got, "bit_reversed skip range 1 to 990 owned by") {
		t.Errorf("SHOW CREATE SEQUENCE prints %s", got)
	}
	insert("reversed", 3)
	if got := value(t, c, "SELECT GROUP_CONCAT(id ORDER BY id DESC) FROM reversed WHERE n = 0"); got != "6917529027641081856,4611686018427387904,2305843009213693952" {
		t.Errorf("the keys are %s", got)
	}
	if _, rows := table(t, c, "CHECK SEQUENCE reversed"); !strings.Contains(fmt.Sprint(rows), "status OK") {
		t.Errorf("CHECK says %v", rows)
	}

	// After DROP its own keys look like those of others.
	exec(t, c, "DROP SEQUENCE reversed")
	wantError(t, c, 1210, "CREATE SEQUENCE reversed BIT_REVERSED OWNED BY reversed.id", "less than half of all keys", "if a sequence that was dropped has given them, write the SKIP RANGE that it had")
	exec(t, c, "CREATE SEQUENCE reversed BIT_REVERSED SKIP RANGE 1 TO 990 OWNED BY reversed.id")
	insert("reversed", 1)
	if got := value(t, c, "SELECT COUNT(*) FROM reversed WHERE id > 990"); got != "4" {
		t.Errorf("after DROP and CREATE there are %s keys", got)
	}

	// With three digits each key of a range would soon be reached.
	exec(t, c, "CREATE SEQUENCE rotated ROTATE 1 DIGITS 3 SKIP RANGE 100 TO 350 CACHE 10")
	seen := make(map[string]bool)
	for range 999 - 251 {
		got := value(t, c, "SELECT NEXTVAL('rotated')")
		if n, _ := strconv.Atoi(got); seen[got] || n >= 100 && n <= 350 || n < 1 || n > 999 {
			t.Fatalf("the key %s is given", got)
		}
		seen[got] = true
	}
	wantError(t, c, 4084, "SELECT NEXTVAL('rotated')")

	create("sharded")
	exec(t, c, "CREATE SEQUENCE sharded SHARD BITS 3 OWNED BY sharded.id")
	if got := warning(); !strings.Contains(got, "begins at 991") {
		t.Errorf("CREATE says %s", got)
	}
	insert("sharded", 3)
	create("rotated9")
	exec(t, c, "CREATE SEQUENCE rotated9 ROTATE 1 DIGITS 9 OWNED BY rotated9.id")
	if got := warning(); !strings.Contains(got, "begins at 9901") || strings.Contains(createOf(t, e, "rotated9"), "skip") {
		t.Errorf("CREATE says %s", got)
	}
	insert("rotated9", 3)
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE later (id BIGINT PRIMARY KEY, n INT)", "INSERT INTO later VALUES (1, 1), (2, 1), (3, 1)")
	exec(t, c, "CREATE SEQUENCE later BIT_REVERSED")
	wantError(t, c, 1210, "ALTER SEQUENCE later OWNED BY later.id", "not of kind BIT_REVERSED", "another name")
}

// A statement that is repeated, as migrations do, finds the sequence as it is, with the keys that
// it passes over and those that it gave.
func TestTheSequenceOfATableThatHadKeysIsMadeOnce(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	// In this mode NOT binds closer than BETWEEN.
	e.Servers[0].Exec(t, "SET GLOBAL sql_mode = CONCAT(@@GLOBAL.sql_mode, ',HIGH_NOT_PRECEDENCE')",
		"CREATE TABLE "+e.Schemas[0]+".photos (id BIGINT PRIMARY KEY)", "INSERT INTO "+e.Schemas[0]+".photos VALUES (1), (1000)")
	t.Cleanup(func() {
		e.Servers[0].Exec(t, "SET GLOBAL sql_mode = REPLACE(@@GLOBAL.sql_mode, 'HIGH_NOT_PRECEDENCE', '')")
	})
	exec(t, c, "CREATE SEQUENCE IF NOT EXISTS photos BIT_REVERSED OWNED BY photos.id", "INSERT INTO photos () VALUES ()", "INSERT INTO photos () VALUES ()")
	shown := value(t, c, "SELECT COUNT(*) FROM photos")
	exec(t, c, "CREATE SEQUENCE IF NOT EXISTS photos BIT_REVERSED OWNED BY photos.id")
	if _, rows := table(t, c, "SHOW WARNINGS"); len(rows) != 1 || !strings.Contains(fmt.Sprint(rows), "already exists") {
		t.Errorf("the statement again: got %v", rows)
	}
	if _, rows := table(t, c, "CHECK SEQUENCE photos"); !strings.Contains(said(t, rows, "check"), "counters go up to 2") {
		t.Errorf("CHECK says %v", rows)
	}
	exec(t, c, "CREATE OR REPLACE SEQUENCE photos BIT_REVERSED OWNED BY photos.id", "INSERT INTO photos () VALUES ()")
	if got := value(t, c, "SELECT COUNT(*) FROM photos"); shown != "4" || got != "5" {
		t.Errorf("rows: %s, then %s, want 4 and 5", shown, got)
	}
	// One explicit key does not end the sequence.
	exec(t, c, "INSERT INTO photos VALUES (1001)")
	if _, rows := table(t, c, "REPAIR SEQUENCE photos"); !strings.Contains(said(t, rows, "repair"), "the sequence hardly gave that key") {
		t.Errorf("REPAIR says %v", rows)
	}
	exec(t, c, "INSERT INTO photos () VALUES ()")
}

// Keys of another EPOCH, as of Twitter's, would be of a time that a sequence waits for.
func TestASnowflakeWaitsForNoKeysOfAnotherEpoch(t *testing.T) {
	const epoch = "2010-11-04T01:42:54.657Z"
	now := time.Now()
	old, err := kind.Parse("SNOWFLAKE EPOCH '" + epoch + "' TICK '1ms' TIME BITS 41 WORKER BITS 10 COUNTER BITS 12")
	if err != nil {
		t.Fatal(err)
	}
	// More than half of its ticks are over.
	half := "SNOWFLAKE EPOCH '" + now.AddDate(-20, 0, 0).UTC().Format(time.DateOnly) + "' TICK '1s' TIME BITS 30 WORKER BITS 10 COUNTER BITS 12"
	late, err := kind.Parse(half)
	if err != nil {
		t.Fatal(err)
	}
	key := func(k kind.Kind) uint64 { return k.Key(k.TickAt(now.Add(-10*time.Second).UnixNano()), 7) }
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE tweets (id BIGINT PRIMARY KEY)", fmt.Sprintf("INSERT INTO tweets VALUES (%d)", key(old)),
		"CREATE TABLE late (id BIGINT PRIMARY KEY)", fmt.Sprintf("INSERT INTO late VALUES (%d)", key(late)))
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE ids SNOWFLAKE", "SELECT NEXTVAL('ids')")
	for _, text := range []string{
		"ALTER SEQUENCE ids OWNED BY tweets.id", "CREATE OR REPLACE SEQUENCE ids SNOWFLAKE OWNED BY tweets.id", "CREATE SEQUENCE others SNOWFLAKE OWNED BY tweets.id",
	} {
		wantError(t, c, 1210, text, "column 'tweets.id'", "would be of 20", "CREATE a SEQUENCE with the EPOCH that those keys have")
	}
	exec(t, c, "SELECT NEXTVAL('ids')")
	for name, clause := range map[string]string{"tweets": "SNOWFLAKE EPOCH '" + epoch + "'", "late": half} {
		exec(t, c, "CREATE SEQUENCE "+name+" "+clause+" OWNED BY "+name+".id", "INSERT INTO "+name+" () VALUES ()", "ALTER SEQUENCE "+name+" OWNED BY "+name+".id",
			"INSERT INTO "+name+" () VALUES ()")
		if got := value(t, c, "SELECT COUNT(*) FROM "+name); got != "3" {
			t.Errorf("%s: got %s rows, want 3", name, got)
		}
	}
}

// A row whose key another program chose may look like a key with any counter. It ends no sequence.
func TestAKeyThatASequenceNeverGaveDoesNotEndIt(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE photos (id BIGINT PRIMARY KEY, n INT)", "CREATE TABLE rotated (id INT PRIMARY KEY, n INT)")
	c := e.Conn(t, e.Schemas[0], nil)
	k, err := kind.Parse("SHARD BITS 5")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	insert := func(what string, want uint64) {
		t.Helper()
		n++
		exec(t, c, fmt.Sprintf("INSERT INTO photos (n) VALUES (%d)", n))
		if got := keyOf(t, k, value(t, c, fmt.Sprintf("SELECT id FROM photos WHERE n = %d", n))); got != want {
			t.Errorf("%s: got the counter %d, want %d", what, got, want)
		}
	}
	exec(t, c, "CREATE SEQUENCE photos SHARD BITS 5 NOCACHE OWNED BY photos.id", fmt.Sprintf("INSERT INTO photos VALUES (%d, 0)", k.Key(70, 9)))
	insert("behind a key of its own", 71)
	exec(t, c, "INSERT INTO photos VALUES (9223372036854775807, 0), (576460752303423486, 0)")
	insert("behind keys of others", 72)
	if _, rows := table(t, c, "REPAIR SEQUENCE photos"); !strings.Contains(said(t, rows, "repair"), "the sequence hardly gave that key") {
		t.Errorf("REPAIR says %v", rows)
	}
	insert("after REPAIR", 73)
	const again = "CREATE OR REPLACE SEQUENCE photos SHARD BITS 5 NOCACHE OWNED BY photos.id"
	exec(t, c, "DELETE FROM photos WHERE id = 9223372036854775807")
	wantError(t, c, 1210, again, "counters go up to 288230376151711742", "not of kind SHARD BITS 5", "DELETE the row if it is an odd one")
	insert("after the error", 74)
	exec(t, c, "DELETE FROM photos WHERE id = 576460752303423486", again)
	insert("made again", 75)

	// What it gave is its own, also above half of all.
	exec(t, c, "CREATE SEQUENCE rotated ROTATE 1 DIGITS 3 NOCACHE START WITH 600", "INSERT INTO rotated VALUES (NEXTVAL('rotated'), 1)",
		"ALTER SEQUENCE rotated OWNED BY rotated.id", "INSERT INTO rotated (n) VALUES (2)")
	if got := value(t, c, "SELECT id FROM rotated WHERE n = 2"); got != "160" {
		t.Errorf("above half: got the key %s, want 160, of the counter 601", got)
	}
}

// With several sequence servers, few digits are those of one of them.
func TestAKindWithFewCountersOnSeveralSequenceServersIsWarnedOf(t *testing.T) {
	e, schema := newDividedEnv(t, 100, mysqltest.Shared(t), mysqltest.SharedSecond(t))
	c := e.Conn(t, schema, nil)
	exec(t, c, "CREATE TABLE bills (no CHAR(6) PRIMARY KEY)")
	for text, want := range map[string]string{
		"few FORMAT '{n:2}'":                        "99 counters are too few for a block on each sequence server: while one is away there may be no key; want more digits]",
		"days FORMAT '{yyyyMMdd}{n:2}' RESET DAILY": "99 counters are too few for a block",
		"many FORMAT '{n:3}'":                       "",
		"plain MAXVALUE 99":                         "",
	} {
		exec(t, c, "CREATE SEQUENCE "+text)
		_, rows := table(t, c, "SHOW WARNINGS")
		if got := fmt.Sprint(rows); !strings.Contains(got, want) || want == "" && len(rows) != 0 {
			t.Errorf("CREATE SEQUENCE %s: warned %s, want %q", text, got, want)
		}
	}
	out := e.CLI(t, e.Addr(), schema, "CREATE SEQUENCE bills FORMAT 'INV{n:2}' OWNED BY bills.no;\n")
	for _, want := range []string{"the keys in bills.no are not compared", "; 99 counters are too few for a block"} {
		if !strings.Contains(out, want) {
			t.Errorf("the command-line client does not print %q:\n%s", want, out)
		}
	}
}

// A key of SNOWFLAKE is LAST_INSERT_ID(key) in each way that a number may be asked for, and rows
// that are filled in together have adjacent keys.
func TestSnowflakesAreInsertIDs(t *testing.T) {
	const clause = "snowflake epoch '2020-01-01' tick '1ms' time bits 41 worker bits 6 counter bits 12"
	k, err := kind.Parse(clause)
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)", "CREATE TABLE copies (id BIGINT PRIMARY KEY, n INT)")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE t SNOWFLAKE COUNTER BITS 12 WORKER BITS 6 EPOCH '2020-01-01' OWNED BY t.id OUTAGE_COVER 60")
	if got := createOf(t, e, "t"); !strings.Contains(got, " "+clause+" outage_cover 60 owned by") {
		t.Errorf("SHOW CREATE SEQUENCE prints %s", got)
	}
	last := uint64(0)
	next := func(what, text string) {
		t.Helper()
		key, err := strconv.ParseUint(text, 10, 64)
		tick, _, _ := k.Decompose(key)
		if err != nil || key <= last || time.Since(k.TimeOf(tick)).Abs() > time.Hour {
			t.Errorf("%s: got %s after %d, and its time is %v (%v)", what, text, last, k.TimeOf(tick), err)
		}
		last = key
	}
	first := value(t, c, "SELECT NEXTVAL('t')")
	next("SELECT", first)
	if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != first {
		t.Errorf("LAST_INSERT_ID() is %s, want %s", got, first)
	}
	insert := func(what string, rows int, statement string, args ...any) {
		t.Helper()
		r, err := c.ExecContext(t.Context(), statement, args...)
		if err != nil {
			t.Errorf("%s: %v", statement, err)
			return
		}
		id, _ := r.LastInsertId()
		next(what, strconv.FormatInt(id, 10))
		if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != strconv.FormatInt(id, 10) {
			t.Errorf("%s: LAST_INSERT_ID() is %s, want %d", what, got, id)
		}
		if got := value(t, c, fmt.Sprintf("SELECT COUNT(*) FROM t WHERE id BETWEEN %d AND %d", id, id+int64(rows)-1)); got != strconv.Itoa(rows) {
			t.Errorf("%s: %s rows have the keys from %d on, want %d", what, got, id, rows)
		}
		last += uint64(rows) - 1
	}
	insert("INSERT", 1, "INSERT INTO t VALUES (NEXTVAL('t'), 1)")
	insert("a key that is filled in", 1, "INSERT INTO t (n) VALUES (2)")
	insert("a prepared INSERT", 1, "INSERT INTO t VALUES (NEXTVAL('t'), ?)", 3)
	insert("a prepared key that is filled in", 1, "INSERT INTO t (n) VALUES (?)", 4)
	insert("rows that are filled in", 3, "INSERT INTO t (n) VALUES (5), (6), (7)")
	insert("rows that are filled in, prepared", 2, "INSERT INTO t (n) VALUES (?), (?)", 5, 6)
	insert("a thousand rows", 1000, "INSERT INTO t (n) VALUES (0)"+strings.Repeat(", (0)", 999))
	wantError(t, c, 1235, "INSERT INTO t (n) VALUES (0)"+strings.Repeat(", (0)", 4096), "4097 consecutive keys", "a tick has 4096")

	exec(t, c, "INSERT INTO t VALUES (NEXTVAL('t'), 10), (NEXTVAL('t'), 11), (NEXTVAL('t'), 12)")
	for n := range 3 {
		next("several rows", value(t, c, fmt.Sprintf("SELECT id FROM t WHERE n = %d", 10+n)))
	}
	exec(t, c, "INSERT INTO copies SELECT NEXTVAL('t'), n FROM t")
	for _, id := range names(t, c, "SELECT id FROM copies ORDER BY id") {
		next("INSERT ... SELECT", id)
	}
	wantError(t, c, 1235, "INSERT INTO copies SELECT NEXTVAL('t'), a.n FROM t AS a JOIN t AS b LIMIT 4097", "a tick has 4096")
	if e.Servers[0].IsMariaDB() {
		next("RETURNING", value(t, c, "INSERT INTO t (n) VALUES (8) RETURNING id"))
	}
	exec(t, c, "INSERT INTO t VALUES (17, 9)") // an explicit key
	next("behind a key of the client's", value(t, c, "SELECT NEXTVAL('t')"))

	wantError(t, c, 1235, "SELECT NEXTVAL('t', 2)", "NEXTVAL with a count")
	wantError(t, c, 1235, "SELECT SETVAL('t', 70)", "SETVAL")
	wantError(t, c, 1235, "ALTER SEQUENCE t RESTART WITH 5", "RESTART", "the time")
	wantError(t, c, 1235, "ALTER SEQUENCE t SNOWFLAKE", "never changes")
	wantError(t, c, 1235, "CREATE OR REPLACE SEQUENCE t SNOWFLAKE", "another kind")
	wantError(t, c, 4091, "SELECT NEXTVAL('t#w0')")
	for _, statement := range []string{"CHECK SEQUENCE t", "REPAIR SEQUENCE t"} {
		if _, rows := table(t, c, statement); !strings.Contains(fmt.Sprint(rows), "the time when they were given") || !strings.Contains(fmt.Sprint(rows), "OK") {
			t.Errorf("%s says %v", statement, rows)
		}
	}
	_, rows := table(t, c, "SHOW SEQUENCES")
	if len(rows) != 1 || rows[0][0] != "t" || rows[0][1] != "NULL" || !strings.Contains(rows[0][9], "years") || rows[0][len(rows[0])-2] != k.String() {
		t.Errorf("SHOW SEQUENCES lists %v", rows)
	}
	exec(t, c, "DROP SEQUENCE t")
	wantError(t, c, 1235, "CREATE SEQUENCE t", "another kind")
	exec(t, c, "CREATE SEQUENCE t "+clause)
	next("after DROP and CREATE", value(t, c, "SELECT NEXTVAL('t')"))
}

// A sequence that has given more than half of its counters has keys there. So after a restore they
// are compared, and REPAIR raises the counter above them.
func TestREPAIRGoesByKeysOfTheUpperHalfOnceTheSequenceIsThere(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i := range e.Servers {
		e.Servers[i].Exec(t, "CREATE TABLE "+e.Schemas[i]+".photos (id BIGINT PRIMARY KEY)")
	}
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos FORMAT '9{n:4}' NOCACHE OWNED BY photos.id", "ALTER SEQUENCE photos RESTART WITH 6000", "INSERT INTO photos () VALUES ()")
	e.Servers[1].Exec(t, "INSERT INTO "+e.Schemas[1]+".photos VALUES (96005)") // given since the backup
	for _, say := range []struct{ op, want string }{
		{"check", "counters go up to 6005, above the counter, which stands at 6000"}, {"repair", "raised from 6000 to 6005"},
	} {
		if _, rows := table(t, c, say.op+" SEQUENCE photos"); !strings.Contains(said(t, rows, say.op), say.want) {
			t.Errorf("%s: got %v, want %q", say.op, rows, say.want)
		}
	}
	exec(t, c, "INSERT INTO photos () VALUES ()")
	if got := value(t, c, "SELECT MAX(id) FROM photos"); got != "96006" {
		t.Errorf("the next key is %s, want 96006", got)
	}
}
