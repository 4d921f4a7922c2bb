package proxy_test

import (
	"fmt"
	"testing"

	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// Servers forget LAST_INSERT_ID(n) for the OK, but not in SQL, when a trigger or a stored function
// runs behind it.
var forgottenRows = []keyRow{
	{"one row", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x')", want: "+0 +0"},
		{text: "INSERT INTO t SET {id=}a = 'y'", want: "+1 +1"},
		{text: "INSERT INTO t (id, a) VALUES ({NULL}, 'nil')", want: "+2 +2"},
		{text: "REPLACE INTO t ({id,}a) VALUES ({k,}'y')", want: "+3 +3"},
		{text: "INSERT INTO t ({id,}a, nothing) VALUES ({k,}'z', 1)", want: "1054 ="},
	}},
	{"many rows", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x'), ({k,}'y'), ({k,}'z')", want: "+0 +0"},
		{text: "INSERT INTO t (id, a) VALUES ({NULL}, 'u'), ({0}, 'v'), ({DEFAULT}, 'w')", want: "+3 +3"},
		{text: "INSERT INTO t VALUES ({NULL}, 'o', 1), ({NULL}, 'p', 2)", want: "+6 +6"},
	}},
	{"a function behind the key", []keyStep{
		{text: "INSERT INTO t (id, a, ref) VALUES ({NULL}, 'x', made_too(5) > 0)", want: "+0 +0"},
		{text: "INSERT INTO t (id, a, ref) VALUES ({NULL}, 'y', 1), ({NULL}, 'z', made_too(6) > 0)", want: "+1 +1"},
	}},
	{"only explicit keys", []keyStep{
		{text: "INSERT INTO t (id, a) VALUES ({+200}, 'x'), ({+201}, 'y')", want: "+201 =", bare: "0 ="},
	}},
	{"an explicit key first", []keyStep{
		{text: "INSERT INTO t (id, a) VALUES ({+300}, 'x'), ({NULL}, 'y'), ({0}, 'z')", want: "+301 +301", filled: "# #"},
	}},
	{"an explicit key last", []keyStep{
		{text: "INSERT INTO t (id, a) VALUES ({NULL}, 'x'), ({NULL}, 'y'), ({+400}, 'z')", want: "+0 +0"},
	}},
	{"a new row", []keyStep{
		{text: "INSERT IGNORE INTO t ({id,}a) VALUES ({k,}'x')", want: "+0 +0"},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'y') ON DUPLICATE KEY UPDATE ref = 2", want: "+1 +1"},
		{text: "INSERT IGNORE INTO t ({id,}a) VALUES ({k,}'z'), ({k,}'u')", want: "+2 +2"},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'v'), ({k,}'w') ON DUPLICATE KEY UPDATE ref = 2", want: "+4 +4"},
	}},
	{"a row is changed", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'first') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", want: "-100 -100"},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'second') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), ref = 5", want: "-99 -99"},
		// With CLIENT_FOUND_ROWS it may be a row that is as it was.
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", want: "+2 +2", bare: "# # or 0 #"},
	}},
	{"no row is new", []keyStep{
		{text: "INSERT IGNORE INTO t ({id,}a) VALUES ({k,}'first')", want: "0 =", bare: "0 # or # #"},
		{text: "INSERT IGNORE INTO t ({id,}a) VALUES ({k,}'first'), ({k,}'second')", want: "0 =", filled: "0 # or # #"},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'first')", want: "1062 =", filled: "1062 #"},
	}},
}

func TestATriggerLeavesTheInsertID(t *testing.T) {
	const auto = "AUTO_INCREMENT"
	server := []*mysqltest.Server{mysqltest.Shared(t)}
	for name, trigger := range map[string]string{
		"before": "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.ref = IFNULL(NEW.ref, 7)",
		"after":  "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log (v) VALUES (NEW.id)",
		"none":   "DO 0",
	} {
		for _, form := range []keyForm{{filled: true}, {filled: true, bare: true}} {
			for _, prepared := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, bare %t, prepared %t", name, form.bare, prepared), func(t *testing.T) {
					o := newOracle(t, setup{Servers: server, Proxy: func(p *proxy.Options) {
						p.Bindings = []proxy.Binding{{Table: "t", Column: "id", Sequence: "photos"}}
					}})
					tables := [2]string{auto, auto}
					if form.bare {
						tables[0] = ""
					}
					p := o.keyPair(t, prepared, tables)
					for _, schema := range p.schemas {
						server[0].Exec(t, "USE "+schema, trigger)
					}
					p.Proxy.query("SELECT NEXTVAL('photos')") // the explicit keys are below
					for _, row := range forgottenRows {
						p.runRow(form, row)
					}
					p.Proxy.quit()
					p.Direct.quit()
				})
			}
		}
	}
}

// Whether the column has AUTO_INCREMENT is found out without a snapshot of the transaction.
func TestATriggerLeavesTheInsertIDOfRowsInATransaction(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(p *proxy.Options) {
		p.Bindings = []proxy.Binding{{Table: "t", Column: "id", Sequence: "photos"}}
	}})
	for name, begin := range map[string][]string{
		"a transaction": {"BEGIN"}, "without autocommit": {"SET autocommit = 0"},
		"a temporary table": {"CREATE TEMPORARY TABLE own (a INT)"}, "a procedure": {"CALL nothing()"},
	} {
		for _, prepared := range []bool{false, true} {
			p := o.keyPair(t, prepared, [2]string{"AUTO_INCREMENT"})
			p.both("CREATE PROCEDURE nothing() DO 1", "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log (v) VALUES (NEW.id)")
			for _, text := range begin {
				p.Proxy.query(text)
			}
			first := o.nextNumber(t, "photos")
			if got, want := insertIDOf(p.send(p.Proxy, "INSERT INTO t (a) VALUES ('x'), ('y')")), fmt.Sprint(first); got != want {
				t.Errorf("%s, prepared %t: insert id %s, want %s", name, prepared, got, want)
			}
			o.Servers[0].Exec(t, "INSERT INTO "+p.schemas[0]+".log (v) VALUES (77)")
			if got := p.Proxy.rows("SELECT COUNT(*) FROM log WHERE v = 77")[0]; got != "1" {
				t.Errorf("%s, prepared %t: got %s rows that were made after the INSERT, want one: a question took a snapshot", name, prepared, got)
			}
			p.Proxy.quit()
			p.Direct.quit()
		}
	}
}

// The insert id of a row that the server numbers stays, also if it is the last number of the rows.
func TestAnotherColumnWithAutoIncrementHasTheInsertID(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(p *proxy.Options) {
		p.Bindings = []proxy.Binding{{Table: "t", Column: "no", Sequence: "photos"}}
	}})
	for _, prepared := range []bool{false, true} {
		p := o.keyPair(t, prepared, [2]string{})
		first := o.nextNumber(t, "photos")
		p.both("DROP TABLE t", fmt.Sprintf("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, no BIGINT UNSIGNED, a VARCHAR(20)) AUTO_INCREMENT = %d", first+1),
			"CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log (v) VALUES (NEW.id)")
		if got, want := insertIDOf(p.send(p.Proxy, "INSERT INTO t (a) VALUES ('x'), ('y')")), fmt.Sprint(first+1); got != want {
			t.Errorf("prepared %t: insert id %s, want %s", prepared, got, want)
		}
		if got, want := p.Proxy.rows("SELECT MAX(no) FROM t")[0], fmt.Sprint(first+1); got != want {
			t.Errorf("prepared %t: the last number is %s, want %s", prepared, got, want)
		}
		p.Proxy.quit()
		p.Direct.quit()
	}
}

func TestATriggerLeavesTheInsertIDOfNextval(t *testing.T) {
	o := newOracle(t, setup{})
	for _, prepared := range []bool{false, true} {
		p := o.keyPair(t, prepared, [2]string{})
		server := o.Servers[0]
		server.Exec(t, "USE "+p.schemas[0], "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log (v) VALUES (NEW.id)",
			"CREATE TRIGGER more AFTER INSERT ON log FOR EACH ROW SET @x = 1")
		for _, c := range []struct{ text, want string }{
			{"INSERT INTO t (id, a) VALUES (NEXTVAL(photos), 'x')", "#"},
			{"INSERT INTO t SET a = 'y', id = NEXTVAL(photos)", "#"},
			{"REPLACE INTO t (a, id) VALUES ('y', NEXTVAL(photos))", "#"},
			{"INSERT INTO t (id, a, ref) VALUES (NEXTVAL(photos), 'u', NEXTVAL(photos)), (NEXTVAL(photos), 'v', 1)", "#"},
			{"INSERT IGNORE INTO t (id, a) VALUES (NEXTVAL(photos), 'w')", "#"},
			{"INSERT INTO t (id, a, ref) VALUES (NEXTVAL(photos), 'fn', made_too(5))", "#"},
			// The server may not have evaluated the call, or has a number of its own.
			{"INSERT INTO t (id, a) VALUES (IF(a = 'x', NEXTVAL(photos), 5), 'z')", "0"},
			{"INSERT INTO t (id, a) VALUES (6, 'zz'), (IF(0, NEXTVAL(photos), 7), 'zzz')", "0"},
			{"INSERT INTO t SET id = 8, a = 'eight', ref = NULL = NEXTVAL(photos)", "0"},
			{"INSERT INTO log (id, v) VALUES (100, NEXTVAL(photos))", "100"},
			{"INSERT INTO log (v) VALUES (NEXTVAL(photos)), (NEXTVAL(photos))", "101"},
		} {
			want := c.want
			if want == "#" {
				want = fmt.Sprint(o.nextNumber(t, "photos"))
			}
			if got := insertIDOf(p.send(p.Proxy, c.text)); got != want {
				t.Errorf("prepared %t: %s: insert id %s, want %s", prepared, c.text, got, want)
			}
		}
		p.Proxy.quit()
		p.Direct.quit()
	}
}
