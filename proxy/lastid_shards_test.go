package proxy_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// twoShards is an oracle whose second shard has the same tables.
func twoShards(t *testing.T) *oracle {
	t.Helper()
	o := newOracle(t, setup{Servers: []*mysqltest.Server{mysqltest.Shared(t), mysqltest.SharedSecond(t)}}, photosTables...)
	o.fresh(t)
	o.Servers[1].Exec(t, append([]string{"USE " + o.Schemas[1]}, photosTables...)...)
	return o
}

func TestLastInsertIDCrossesShardsBothWays(t *testing.T) {
	o := twoShards(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	check := func(what, want string) {
		t.Helper()
		for _, ask := range []string{"SELECT LAST_INSERT_ID()", "SELECT @@identity + 0", "SELECT LAST_INSERT_ID() FROM photos LIMIT 1"} {
			if got := w.rows(ask)[0]; got != want {
				t.Errorf("%s: %s: got %s, want %s", what, ask, got, want)
			}
		}
	}
	to := func(i int) { w.query("USE " + o.Schemas[i]) }
	check("at first", "0")
	to(1)
	check("at first on the other shard", "0")
	w.query("INSERT INTO auto (a) VALUES ('x')")
	to(0)
	check("a row of the other shard", "102")
	n := w.rows("SELECT NEXTVAL('photos')")[0]
	to(1)
	check("a number given in between", n)
	w.query("INSERT INTO photos (id) VALUES (9)")
	check("an explicit key", n)
	to(0)
	check("back again", n)
	w.query("INSERT INTO photos (id) VALUES (NEXTVAL('photos'))")
	m := w.rows("SELECT LAST_INSERT_ID()")[0]
	to(1)
	w.query("INSERT INTO photos (id, parent) VALUES (5, LAST_INSERT_ID())")
	if got := w.rows("SELECT parent FROM photos WHERE id = 5")[0]; got != m {
		t.Errorf("a child on the other shard: got parent %s, want %s", got, m)
	}
	w.query("INSERT INTO auto (a) VALUES ('first')") // fails
	check("after a statement that failed", m)
	w.do(protocol.ComInitDB, o.Schemas[0])
	w.query("INSERT INTO auto (a) VALUES ('made here'), ('and here')")
	to(1)
	check("a row of the first shard", "102")
	n = w.rows("SELECT NEXTVAL('photos')")[0]
	w.query("INSERT INTO auto (a, ref) VALUES ('y', LAST_INSERT_ID())")
	if got := w.rows("SELECT CONCAT(ref, ' ', id = LAST_INSERT_ID()) FROM auto WHERE a = 'y'")[0]; got != n+" 1" {
		t.Errorf("a child with a generated key: got %s, want %s 1", got, n)
	}
	// The results of the last statement are the current shard's, also with an insert id of another.
	to(0)
	w.query("SELECT LAST_INSERT_ID(77)")
	to(1)
	w.send(packet(command(protocol.ComQuery, "SELECT id FROM photos WHERE id < 3")))
	w.receive(protocol.ShapeResult, nil) // without a ping behind it, which would reset the row count
	if got := fmt.Sprint(w.rows("SELECT LAST_INSERT_ID(), FOUND_ROWS(), ROW_COUNT()")); got != "[77 2 -1]" {
		t.Errorf("id and row counts after a change of shards: got %s, want [77 2 -1]", got)
	}
}

func TestLastInsertIDCrossesShardsInPreparedStatements(t *testing.T) {
	o := twoShards(t)
	c := o.Conn(t, o.Schemas[0], nil)
	ask, err := c.PrepareContext(t.Context(), "SELECT LAST_INSERT_ID(), @@identity")
	if err != nil {
		t.Fatal(err)
	}
	defer ask.Close()
	child, err := c.PrepareContext(t.Context(), "INSERT INTO photos (id, parent) VALUES (?, LAST_INSERT_ID())")
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	exec(t, c, "SELECT NEXTVAL('photos')", "USE "+o.Schemas[1], "INSERT INTO auto (a) VALUES ('x')")
	var a, b string
	if err := ask.QueryRow().Scan(&a, &b); err != nil || a != "102" || b != "102" {
		t.Errorf("a statement prepared on the first shard: got %s %s, %v, want the other's 102", a, b, err)
	}
	n := value(t, c, "SELECT NEXTVAL('photos')")
	if _, err := child.Exec(500); err != nil {
		t.Fatal(err)
	}
	if got := value(t, o.DirectConn(t, 0, o.Schemas[0], nil), "SELECT parent FROM photos WHERE id = 500"); got != n {
		t.Errorf("parent: got %s, want %s", got, n)
	}
	if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != n {
		t.Errorf("afterwards: got %s, want %s", got, n)
	}
}

func TestResetAndChangeUserMakeLastInsertIDZero(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	o.fresh(t)
	for what, set := range map[string]string{"a number": "SELECT NEXTVAL('photos')", "a row": "INSERT INTO auto (a) VALUES ('x')", "a row with a number": "INSERT INTO photos (id) VALUES (NEXTVAL('photos'))"} {
		t.Run(what, func(t *testing.T) {
			w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
			w.query(set)
			if got := w.rows("SELECT LAST_INSERT_ID()")[0]; got == "0" {
				t.Fatal("LAST_INSERT_ID() is 0 at once")
			}
			w.query(set + " -- again")
			if answer := w.do(protocol.ComResetConn, ""); answer[4] != 0 {
				t.Fatalf("reset: %x", answer)
			}
			for _, ask := range []string{"SELECT LAST_INSERT_ID()", "SELECT @@identity + 0 FROM photos LIMIT 1"} {
				if got := w.rows(ask)[0]; got != "0" {
					t.Errorf("%s after a reset: got %s, want 0", ask, got)
				}
			}
			o.fresh(t)
		})
	}
	// The driver does not reset LAST_INSERT_ID(); a new login on the same connection does.
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	w.query("SELECT NEXTVAL('photos')")
	change := append([]byte{byte(protocol.ComChangeUser)}, o.User...)
	change = append(change, 0, 0)
	change = append(append(change, o.Schemas[0]...), 0, 45, 0)
	change = append(append(change, "mysql_native_password"...), 0)
	w.send(packet(change))
	answer, err := w.raw()
	if err != nil || answer[4] != 0xfe {
		t.Fatalf("change user: got %x, %v, want a switch of the method", answer, err)
	}
	_, rest, _ := bytes.Cut(answer[5:], []byte{0})
	salt := bytes.TrimRight(rest, "\x00")
	reply, _ := protocol.AppendPacket(nil, nativeScramble(salt[:20], o.Password), answer[3]+1)
	w.send(reply)
	if answer, err = w.raw(); err != nil || answer[4] != 0 {
		t.Fatalf("change user: got %x, %v, want OK", answer, err)
	}
	if got := w.rows("SELECT LAST_INSERT_ID()")[0]; got != "0" {
		t.Errorf("after a change of users: got %s, want 0", got)
	}
}

func TestTriggersSeeAGivenNumberWhereThatIsAskedFor(t *testing.T) {
	tables := append(slices.Clone(photosTables),
		"CREATE TABLE log (v BIGINT UNSIGNED)",
		"CREATE TRIGGER t BEFORE DELETE ON photos FOR EACH ROW INSERT INTO log VALUES (LAST_INSERT_ID())",
		"CREATE FUNCTION f() RETURNS BIGINT UNSIGNED RETURN LAST_INSERT_ID()",
	)
	o := newOracle(t, setup{Proxy: func(p *proxy.Options) { p.LastInsertIDExact = true }}, tables...)
	o.run(t, []script{{"exact", []string{
		"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
		"SELECT f()",
		"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
		"SELECT id FROM photos",
		"SELECT FOUND_ROWS(), ROW_COUNT(), f()",
		"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
		"DELETE FROM photos WHERE id = 1",
		"SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a",
		"UPDATE photos SET n = f()",
		"SELECT * FROM log",
		"SELECT * FROM photos",
		insertIDs,
	}}}, "packets with EOF", "go-sql-driver")
}

func TestKeysAreGivenWithEveryShardDown(t *testing.T) {
	keys, shard := mysqltest.Start(t), mysqltest.Start(t)
	e := newEnv(t, setup{Servers: []*mysqltest.Server{keys, shard}})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "photos"}); err != nil {
		t.Fatal(err)
	}
	if err := shard.Kill(); err != nil {
		t.Fatal(err)
	}
	c := e.Conn(t, e.Schemas[1], nil)
	for i := 1; i <= 3; i++ {
		if got := value(t, c, "SELECT NEXTVAL('photos')"); got != fmt.Sprint(i) {
			t.Errorf("got %s, want %d", got, i)
		}
		if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != fmt.Sprint(i) {
			t.Errorf("LAST_INSERT_ID(): got %s, want %d", got, i)
		}
	}
	var n, before string
	if err := c.QueryRowContext(t.Context(), "SELECT NEXTVAL('photos') AS a, LAST_INSERT_ID() AS b").Scan(&n, &before); err != nil || n != "4" || before != "3" {
		t.Errorf("both in one: got %s and %s, %v, want 4 and 3", n, before, err)
	}
	_, err := c.ExecContext(t.Context(), "INSERT INTO t VALUES (NEXTVAL('photos'))")
	if e, ok := err.(*mysql.MySQLError); !ok || !bytes.Contains([]byte(e.Message), []byte("s1")) {
		t.Errorf("an INSERT: got %v, want an error that names the shard", err)
	}
	// With the sequence server down, numbers in memory are still given.
	if err := keys.Kill(); err != nil {
		t.Fatal(err)
	}
	for i := 5; i <= 8; i++ {
		if got := value(t, c, "SELECT NEXTVAL('photos')"); got != fmt.Sprint(i) {
			t.Errorf("without any server: got %s, want %d", got, i)
		}
	}
}

func TestWhatAPreparedStatementOfAnotherShardLeftIsItsOwn(t *testing.T) {
	o := twoShards(t)
	c := o.Conn(t, o.Schemas[0], nil)
	update, err := c.PrepareContext(t.Context(), "UPDATE photos SET n = IFNULL(1 / ?, 7)")
	if err != nil {
		t.Fatal(err)
	}
	defer update.Close()
	exec(t, c, "USE "+o.Schemas[1], "SET sql_mode = ''", "UPDATE photos SET n = 1 WHERE id = 1")
	run := func() {
		t.Helper()
		if _, err := update.Exec(0); err != nil {
			t.Fatal(err)
		}
	}
	run()
	wantError(t, c, 1235, "SELECT ROW_COUNT()", "s0", "s1")
	run()
	wantError(t, c, 1235, "GET DIAGNOSTICS @n = NUMBER", "s0")
	if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != "0" {
		t.Errorf("LAST_INSERT_ID(): got %s, want 0", got)
	}
	warn, err := c.PrepareContext(t.Context(), "SELECT 1/?")
	if err != nil {
		t.Fatal(err)
	}
	defer warn.Close()
	exec(t, c, "USE "+o.Schemas[0], "SET sql_mode = 'ERROR_FOR_DIVISION_BY_ZERO'")
	var none sql.NullString
	if err := warn.QueryRow(0).Scan(&none); err != nil {
		t.Fatal(err)
	}
	rows, err := c.QueryContext(t.Context(), "SHOW WARNINGS")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var warnings []string
	for rows.Next() {
		var level, code, message string
		if err := rows.Scan(&level, &code, &message); err != nil {
			t.Fatal(err)
		}
		warnings = append(warnings, code)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	// The current shard has no warnings.
	if got := fmt.Sprint(warnings); got != "[1365]" {
		t.Errorf("SHOW WARNINGS: got %s, want the one of the other shard, [1365]", got)
	}
}
