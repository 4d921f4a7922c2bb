package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

var manyTypes = append([]string{
	"CREATE TABLE many (id BIGINT UNSIGNED PRIMARY KEY, a BIGINT, b BIGINT UNSIGNED, c DOUBLE, d VARBINARY(300), e DECIMAL(20,5), " +
		"f DATETIME(6), g TIME(6), h DATE, i LONGBLOB, j VARCHAR(50), k FLOAT, l BIGINT UNSIGNED)",
	"CREATE TABLE five (id BIGINT UNSIGNED PRIMARY KEY, a INT, b VARCHAR(50), c DOUBLE, d VARBINARY(300), e BIGINT UNSIGNED)",
}, photosTables...)

const manyRows = "SELECT id, a, b, c, HEX(d), e, f, g, h, LENGTH(i), SHA2(i, 256), HEX(j), k, l FROM many ORDER BY id"

// Checklist 20.
// Checklist 21.
func TestAPreparedSelectOfNumbersIsWhatLastInsertIDWouldBe(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	for name, caps := range endings {
		t.Run(name, func(t *testing.T) {
			p := o.pairOfSchemas(t, caps)
			for _, text := range []string{
				"SELECT NEXTVAL('photos') => SELECT LAST_INSERT_ID({p}) AS `NEXTVAL('photos')`",
				"SELECT nextval( `photos` ) AS a; => SELECT LAST_INSERT_ID({p}) AS a;",
				"SELECT NEXTVAL('photos') a FROM DUAL => SELECT LAST_INSERT_ID({p}) a FROM DUAL",
				"SELECT NEXTVAL('photos') AS a LIMIT 1 => SELECT LAST_INSERT_ID({p}) AS a LIMIT 1",
				"SELECT NEXTVAL('photos') LIMIT ? => SELECT LAST_INSERT_ID({p}) AS `NEXTVAL('photos')` LIMIT ?",
				"SELECT «NEXTVAL('photos')» + ? AS a, ? AS b, CONCAT(«NEXTVAL('other')», ?, '§') AS c",
				"SELECT ? AS x, «NEXTVAL('photos')» AS a UNION ALL SELECT ?, «NEXTVAL('photos')»",
				"SELECT LAST_INSERT_ID()",
				"SELECT LAST_INSERT_ID() AS a, @@identity, @@last_insert_id + ?",
				"SELECT 'NEXTVAL(''photos'')', ?",
			} {
				o.prepare(t, p, text).executeAndAsk()
				p.query("SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()")
			}
		})
	}
}

func TestAPreparedSelectOfNumbersKeepsTheSessionsRowLimit(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	p := o.pairOfSchemas(t, allFraming)
	pp := o.prepare(t, p, "SELECT NEXTVAL('photos') AS a => SELECT LAST_INSERT_ID({p}) AS a")
	for _, limit := range []string{"1", "0", "18446744073709551615", "0", "DEFAULT"} {
		p.query("SET sql_select_limit = " + limit)
		before := o.nextNumber(t, "photos")
		pp.execute(true)
		p.query(insertIDs)
		if after := o.nextNumber(t, "photos"); limit == "0" && after != before {
			t.Errorf("a SELECT without a row took %d numbers, want 0", after-before)
		}
	}
	p.query(insertIDs)
}

// Checklist 21.
func TestAPreparedInsertTakesNumbersAtEachExecution(t *testing.T) {
	o := newOracle(t, setup{}, manyTypes...)
	big := strings.Repeat("0123456789abcdef", 70_000/16)
	every := func(n int64) []argument {
		return []argument{
			integer(mysql.MYSQL_TYPE_LONGLONG, -n), unsigned(-uint64(n)), double(float64(n) / 3), textArg(mysql.MYSQL_TYPE_VAR_STRING, "\x00\xff'\\?"),
			textArg(mysql.MYSQL_TYPE_NEWDECIMAL, fmt.Sprintf("-12345.%d", n)), moment(mysql.MYSQL_TYPE_DATETIME, 0xe4, 7, 2, 29, 23, 59, 58, 1, 2, 3, 0),
			moment(mysql.MYSQL_TYPE_TIME, 1, 2, 0, 0, 0, 3, 4, 5, 6, 0, 0, 0), moment(mysql.MYSQL_TYPE_DATE, 0xe4, 7, 2, 29),
			textArg(mysql.MYSQL_TYPE_LONG_BLOB, big), textArg(mysql.MYSQL_TYPE_STRING, "größe"), single(1.5),
		}
	}
	const insert = "INSERT INTO many (a, b, c, d, id, e, f, g, h, l, i, j, k) VALUES (?, ?, ?, ?, «NEXTVAL('photos')», ?, ?, ?, ?, «NEXTVAL('other')», ?, ?, ?)"
	for name, caps := range endings {
		t.Run(name, func(t *testing.T) {
			p := o.pairOfSchemas(t, caps)
			t.Run("every type", func(t *testing.T) {
				pp := o.prepare(t, p, insert)
				if pp.announced != 11 {
					t.Errorf("parameters: got %d, want the client's 11", pp.announced)
				}
				for i := range 5 {
					pp.execute(i%2 == 0, every(int64(i+1))...) // alternates between types and no types
				}
				p.query(insertIDs)
				p.query("SELECT ROW_COUNT()")
				// Other types, shorter dates, NULLs in every place.
				args := every(9)
				args[0], args[2], args[3] = integer(mysql.MYSQL_TYPE_TINY, 200), integer(mysql.MYSQL_TYPE_SHORT, -2), textArg(mysql.MYSQL_TYPE_BLOB, "")
				args[4], args[5], args[6] = integer(mysql.MYSQL_TYPE_LONG, -7), moment(mysql.MYSQL_TYPE_TIMESTAMP, 0xe4, 7, 2, 29), moment(mysql.MYSQL_TYPE_TIME)
				args[9], args[10] = integer(mysql.MYSQL_TYPE_YEAR, 1999), integer(mysql.MYSQL_TYPE_INT24, 77)
				if !o.Servers[0].IsMariaDB() { // only MariaDB has these two types of parameters
					args[9], args[10] = integer(mysql.MYSQL_TYPE_SHORT, 1999), integer(mysql.MYSQL_TYPE_LONG, 77)
				}
				pp.execute(true, args...)
				pp.execute(false, args...)
				for i := range args {
					args := every(3)
					args[i] = null(mysql.MYSQL_TYPE_NULL)
					pp.execute(true, args...)
					args = every(3)
					args[i].value = nil // a NULL of its type
					pp.execute(true, args...)
				}
				all := make([]argument, len(args))
				for i := range all {
					all[i] = null(mysql.MYSQL_TYPE_NULL)
				}
				pp.execute(true, all...)
				pp.sameRows(manyRows)
			})
			t.Run("long data", func(t *testing.T) {
				pp := o.prepare(t, p, insert)
				for range 2 {
					args := every(4)
					args[3], args[8], args[9] = longData("piece by piece"), longData(big+big), longData("größe")
					pp.execute(true, args...)
					pp.execute(true, every(5)...) // without long data, which lived for one execution
				}
				// COM_STMT_RESET drops long data.
				lost := longData("lost")
				pp.sendLong(p.Proxy, pp.id, []argument{{}, {}, {}, lost})
				pp.sendLong(p.Direct, pp.directID, []argument{{}, {}, {}, lost})
				reset := func(id uint32) string { return string(binary.LittleEndian.AppendUint32(nil, id)) }
				compare(t, "reset", p.Proxy.do(protocol.ComStmtReset, reset(pp.id)), p.Direct.do(protocol.ComStmtReset, reset(pp.directID)))
				pp.execute(true, every(6)...)
				pp.sameRows(manyRows)
			})
			t.Run("twenty rows of five", func(t *testing.T) {
				pp := o.prepare(t, p, "INSERT INTO five (id, a, b, c, d, e) VALUES "+strings.TrimSuffix(strings.Repeat("(«NEXTVAL('photos')», ?, ?, ?, ?, ?), ", 20), ", "))
				for i := range 10 {
					var args []argument
					for row := range 20 {
						args = append(args, integer(mysql.MYSQL_TYPE_LONG, int64(row)), textArg(mysql.MYSQL_TYPE_VAR_STRING, "row"), double(0.5), textArg(mysql.MYSQL_TYPE_BLOB, "\x00"), unsigned(uint64(i)))
					}
					args[7*i] = null(mysql.MYSQL_TYPE_NULL)
					pp.execute(true, args...)
					p.query(insertIDs)
				}
				pp.sameRows("SELECT id, a, b, c, HEX(d), e FROM five ORDER BY id")
			})
			t.Run("errors", func(t *testing.T) {
				pp := o.prepare(t, p, "INSERT INTO photos (id, n) VALUES («NEXTVAL('photos')», ?), (?, 1)")
				pp.execute(true, integer(mysql.MYSQL_TYPE_LONG, 5), unsigned(1))
				p.query("SHOW WARNINGS")
				p.query(insertIDs)
				pp.execute(true, integer(mysql.MYSQL_TYPE_LONG, 5), unsigned(99999))
				p.query(insertIDs)
				pp.sameRows("SELECT * FROM photos ORDER BY id")
			})
		})
	}
}

func TestAPreparedInsertSeesThePreviousLastInsertID(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	c := o.Conn(t, o.Schemas[0], nil)
	o.fresh(t)
	stmt, err := c.PrepareContext(t.Context(), "INSERT INTO photos (id, parent, n) VALUES (NEXTVAL('photos'), LAST_INSERT_ID(), ?), (NEXTVAL('photos'), @@identity, ?)")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	exec(t, c, "SELECT LAST_INSERT_ID(42)")
	want := "42"
	for range 3 {
		r, err := stmt.Exec(1, 2)
		if err != nil {
			t.Fatal(err)
		}
		id, err := r.LastInsertId()
		if err != nil {
			t.Fatal(err)
		}
		if got := value(t, c, fmt.Sprintf("SELECT GROUP_CONCAT(parent) FROM photos WHERE id IN (%d, %d)", id, id+1)); got != want+","+want {
			t.Errorf("LAST_INSERT_ID() in the statement: got %s, want %s twice", got, want)
		}
		want = value(t, c, "SELECT LAST_INSERT_ID()")
		if want != fmt.Sprint(id) {
			t.Errorf("LAST_INSERT_ID() afterwards: got %s, want %d", want, id)
		}
	}
	// A number that only the proxy knows counts, too.
	want = value(t, c, "SELECT NEXTVAL('other')")
	if _, err := stmt.Exec(1, 2); err != nil {
		t.Fatal(err)
	}
	if got := value(t, c, "SELECT GROUP_CONCAT(DISTINCT parent) FROM photos WHERE id >= LAST_INSERT_ID()"); got != want {
		t.Errorf("LAST_INSERT_ID() in the statement: got %s, want %s", got, want)
	}
}

// An execution that is refused as malformed may leave its types for the next one without types;
// whether it does depends on the server. The values read as a number as well as a text, so that
// they show the type.
func TestTypesThatCameWithAMalformedExecutionAreKeptAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	const number, text, both = "\x07\x00\x00\x00", "\x02ab", "\x03123"
	for _, refused := range []struct{ name, binding string }{
		{"a number cut off", binding("\x00", "\x08\x00", number)},
		{"no value", binding("\x00", typeString, "")},
		{"half a type", binding("\x00", "\xfd", "")},
		{"no types", "\x00\x01"},
		{"no sign of types", "\x00"},
		{"nothing", ""},
		{"a number cut off, without types", binding("\x00", "", "\x07\x00")},
	} {
		for _, bound := range []string{"before", "never"} {
			t.Run(refused.name+"/"+bound, func(t *testing.T) {
				e.Servers[0].Exec(t, "DROP TABLE IF EXISTS "+e.Schemas[0]+".t", "CREATE TABLE "+e.Schemas[0]+".t (id BIGINT UNSIGNED, a VARCHAR(50))")
				p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
				proxied := string(p.Proxy.do(protocol.ComStmtPrepare, "INSERT INTO t VALUES (NEXTVAL('s'), ?)")[5:9])
				direct := string(p.Direct.do(protocol.ComStmtPrepare, "INSERT INTO t VALUES (1, ?)")[5:9])
				run := func(w *wire, id, binding string) (answer []byte, stored []string) {
					w.query("DELETE FROM t")
					answer = bytes.Clone(w.do(protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00"+binding))
					return answer, w.rows("SELECT a FROM t UNION ALL SELECT 'that is all'")
				}
				execute := func(step, binding string) {
					t.Helper()
					got, stored := run(p.Proxy, proxied, binding)
					want, wantStored := run(p.Direct, direct, binding)
					// MariaDB's error depends on where exactly its packet ends.
					exact := step != "malformed" || !e.Servers[0].IsMariaDB()
					if got[4] != want[4] || got[4] == 0xff && exact && !bytes.Equal(got, want) || !slices.Equal(stored, wantStored) {
						t.Errorf("%s: got %q and stored %q, want %q and %q", step, got, stored, want, wantStored)
					}
				}
				if bound == "before" {
					execute("with types", binding("\x00", typeLong, number))
				}
				execute("malformed", refused.binding)
				execute("without types", binding("\x00", "", both))
				execute("with types again", binding("\x00", typeString, text))
				execute("without types again", binding("\x00", "", both))
			})
		}
	}
}

// Checklist 13.
func TestLongDataOfAnExecutionThatTheProxyRefusesIsGone(t *testing.T) {
	o := newOracle(t, setup{}, manyTypes...)
	o.fresh(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	for _, s := range []string{"DROP SEQUENCE other", "CREATE SEQUENCE other START WITH 100"} {
		w.query(s)
	}
	answer := w.do(protocol.ComStmtPrepare, "INSERT INTO many (id, d) VALUES (NEXTVAL('other'), ?)")
	id := binary.LittleEndian.Uint32(answer[5:])
	arg := []argument{{typ: uint16(mysql.MYSQL_TYPE_BLOB), value: []byte("once"), long: true}}
	w.query("DROP SEQUENCE other")
	w.send(packet(longDataCommand(id, 0, arg[0].value)))
	if e := serverError(t, w.do(protocol.ComStmtExecute, string(execution(id, arg, true)[1:]))); e.Code != 4091 || e.State != "42S02" {
		t.Errorf("execution with a sequence that is gone: got %v, want 4091/42S02", e)
	}
	w.query("CREATE SEQUENCE other")
	w.send(packet(longDataCommand(id, 0, arg[0].value)))
	w.do(protocol.ComStmtExecute, string(execution(id, arg, true)[1:]))
	if got := w.rows("SELECT d FROM many")[0]; got != "once" {
		t.Errorf("long data: got %q, want %q", got, "once")
	}
}

func TestTheDriverInsertsWithArgumentsAndNumbers(t *testing.T) {
	o := newOracle(t, setup{}, manyTypes...)
	when := time.Date(2024, 2, 29, 23, 59, 58, 123456000, time.UTC)
	args := []any{int64(-5), uint64(1<<64 - 1), 2.5, []byte("\x00\xff"), "12.5", when, "11:12:13", when.Format(time.DateOnly), []byte(strings.Repeat("x", 100_000)), "größe", float32(1.5)}
	next, other := o.nextNumber(t, "photos"), o.nextNumber(t, "other")
	run := func(proxied bool) []string {
		o.fresh(t)
		c := o.DirectConn(t, 0, o.Schemas[0], nil)
		if proxied {
			c = o.Conn(t, o.Schemas[0], nil)
		}
		defer c.Close()
		call := func(name string, n uint64, first bool) string {
			switch {
			case proxied:
				return "NEXTVAL('" + name + "')"
			case first:
				return fmt.Sprintf("LAST_INSERT_ID(%d)", n)
			}
			return fmt.Sprintf("CAST(%d AS UNSIGNED)", n)
		}
		var answers []string
		for i := range uint64(3) {
			answers = append(answers, driverAnswer(c, false, "INSERT INTO many (a, b, c, d, id, e, f, g, h, l, i, j, k) VALUES (?, ?, ?, ?, "+
				call("photos", next+i, true)+", ?, ?, ?, ?, "+call("other", other+i, false)+", ?, ?, ?)", args...))
			answers = append(answers, driverAnswer(c, true, insertIDs), driverAnswer(c, true, insertIDs+", ?", 7))
		}
		nulls := make([]any, len(args))
		answers = append(answers, driverAnswer(c, false, "INSERT INTO many (a, b, c, d, id, e, f, g, h, l, i, j, k) VALUES (?, ?, ?, ?, "+
			call("photos", next+3, true)+", ?, ?, ?, ?, "+call("other", other+3, false)+", ?, ?, ?)", nulls...))
		answers = append(answers, driverAnswer(c, true, manyRows+" LIMIT ?", 100))
		return answers
	}
	got := run(true)
	if took := o.nextNumber(t, "photos") - next; took != 4 {
		t.Errorf("numbers taken: got %d, want 4, one for each execution", took)
	}
	want := run(false)
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("answer %d: got\n%.1000s\nwant\n%.1000s", i, got[i], want[i])
		}
	}
}

func TestAPreparedTextIsReadAsItWasWhenItWasPrepared(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	o.fresh(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	id := binary.LittleEndian.Uint32(w.do(protocol.ComStmtPrepare, `SELECT NEXTVAL('photos') AS 'it\'s'`)[5:])
	w.query("SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'")
	answer := w.do(protocol.ComStmtExecute, string(execution(id, nil, false)[1:]))
	if answer[4] != 1 || !strings.Contains(string(answer), "it's") {
		t.Errorf("execution in another sql_mode: got %q, want a column it's", answer)
	}
}

func TestAPreparedNumberOfASequenceThatIsNotServedAnyMoreIsUnknown(t *testing.T) {
	for _, shards := range []int{1, noShards} {
		o := newOracle(t, setup{Shards: shards, Proxy: func(p *proxy.Options) { p.Unknown = proxy.UnknownRelay }})
		w := o.Wire(t, o.Addr(), wireLogin{})
		id := binary.LittleEndian.Uint32(w.do(protocol.ComStmtPrepare, "SELECT NEXTVAL('photos') AS a")[5:])
		execute := func() []byte { return w.do(protocol.ComStmtExecute, string(execution(id, nil, false)[1:])) }
		if got := execute(); got[4] != 1 {
			t.Fatalf("got %q, want a number", got)
		}
		if got := w.query("DROP SEQUENCE photos"); got[4] != 0 {
			t.Fatal(serverError(t, got))
		}
		if err := serverError(t, execute()); err.Code != 4091 || !strings.Contains(err.Message, "photos") {
			t.Errorf("%d shards: got %v, want 4091 naming the sequence", shards, err)
		}
	}
}
