package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// An INSERT leaves two values that differ: the insert id of the OK packet, which drivers return as
// their "last insert id", and the function LAST_INSERT_ID(), which SQL reads. keyRows are the cases
// of the C API's documentation and of the servers' source. Each runs direct with AUTO_INCREMENT,
// where the numbers here are expected, and then
//
//   - through the proxy as it is,
//   - through the proxy with NEXTVAL('photos') where the key was generated; the oracle is
//     the direct run with LAST_INSERT_ID(n), whose figures are given where they are not
//     those of AUTO_INCREMENT,
//   - through the proxy with the column bound to a sequence, whose numbers are then those
//     of AUTO_INCREMENT; cases that differ from AUTO_INCREMENT have their figures here.
//
// each as text and prepared. After each statement the test compares every byte that a client
// sees, and then ROW_COUNT(), LAST_INSERT_ID(), @@last_insert_id and @@identity.
//
// Marks in a text stand for the generated key: {id,} and {k,} for the column and its value,
// which AUTO_INCREMENT leaves out, {id=} for both in SET, {NULL}, {0} and {DEFAULT} for
// values that make the server generate one. {+n} and {-n} are explicit numbers, counted
// from the first generated number of the row; {last} is LAST_INSERT_ID(), which is 42 before.
type keyRow struct {
	name  string
	steps []keyStep
}

// keyStep is a statement and what it must leave: "id function", the insert id of the OK packet and
// LAST_INSERT_ID(). Numbers are written as in the text. "=" means that the function does not
// change, and "rows" or an error's number may stand for the insert id.
type keyStep struct {
	text, want string
	given      string // with NEXTVAL, where it differs: "#" is the first of the numbers
	// With keys that are filled in, where they differ from AUTO_INCREMENT. It may have an " or ".
	filled string
	bare   string // with such keys in a column without AUTO_INCREMENT, where that differs
}

// none, as given or filled, excludes a statement.
const none = "none"

// keyTables are t, whose rows first and second have explicit keys, and further tables.
func keyTables(autoIncrement string) []string {
	return []string{
		"CREATE TABLE t (id BIGINT UNSIGNED NOT NULL " + autoIncrement + " PRIMARY KEY, a VARCHAR(20) NOT NULL, ref BIGINT UNSIGNED, UNIQUE (a))",
		"CREATE TABLE keyless (v BIGINT UNSIGNED)",
		"CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, v BIGINT UNSIGNED)",
		"CREATE TABLE loud (v INT)",
		"CREATE TRIGGER loudly AFTER INSERT ON loud FOR EACH ROW INSERT INTO log (v) VALUES (NEW.v)",
		"CREATE PROCEDURE made(IN n VARCHAR(20)) INSERT INTO log (v) VALUES (7)",
		"CREATE FUNCTION made_too(n BIGINT UNSIGNED) RETURNS BIGINT UNSIGNED BEGIN INSERT INTO log (v) VALUES (n); RETURN LAST_INSERT_ID(); END",
	}
}

var keyRows = []keyRow{
	{"one row", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x')", want: "+0 +0"},
		{text: "INSERT INTO t SET {id=}a = 'y'", want: "+1 +1"},
		{text: "INSERT INTO t (id, a) VALUES ({NULL}, 'nil')", want: "+2 +2"},
		{text: "INSERT INTO t (a, id) VALUE ('zero', {0})", want: "+3 +3"},
		{text: "INSERT INTO t (id, a) VALUES ({DEFAULT}, 'default')", want: "+4 +4"},
		{text: "INSERT INTO t VALUES ({NULL}, 'all', NULL)", want: "+5 +5"},
	}},
	{"many rows", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x'), ({k,}'y'), ({k,}'z')", want: "+0 +0"},
		{text: "INSERT INTO t (id, a) VALUES ({NULL}, 'u'), ({0}, 'v'), ({DEFAULT}, 'w')", want: "+3 +3"},
		{text: "INSERT INTO t VALUES ({NULL}, 'o', 1), ({NULL}, 'p', 2)", want: "+6 +6"},
	}},
	{"only explicit keys", []keyStep{
		{text: "INSERT INTO t (id, a) VALUES ({+200}, 'x'), ({+201}, 'y')", want: "+201 =", bare: "0 ="},
		{text: "INSERT INTO t SET id = {+202}, a = 'z'", want: "+202 =", bare: "0 ="},
	}},
	{"explicit keys first", []keyStep{
		{text: "INSERT INTO t (id, a) VALUES ({+300}, 'x'), ({NULL}, 'y'), ({0}, 'z')", want: "+301 +301", given: "+0 +0", filled: "# #"},
	}},
	{"explicit keys between", []keyStep{
		{text: "INSERT INTO t (id, a) VALUES ({NULL}, 'x'), ({+400}, 'y'), ({NULL}, 'z')", want: "+0 +0", filled: "# #"},
	}},
	{"no key is made", []keyStep{
		{text: "INSERT INTO keyless VALUES (1), (2)", want: "0 ="},
		{text: "UPDATE t SET ref = 1", want: "0 ="},
		{text: "DELETE FROM t WHERE a = 'second'", want: "0 ="},
		{text: "DELETE FROM keyless", want: "0 ="},
		{text: "CREATE TABLE other (a INT)", want: "0 ="},
		{text: "DROP TABLE other", want: "0 ="},
		{text: "DO 1", want: "0 ="},
		{text: "SELECT a FROM t", want: "rows ="},
	}},
	{"LAST_INSERT_ID(expr) in a statement that changes rows", []keyStep{
		{text: "UPDATE t SET ref = LAST_INSERT_ID(777) WHERE a = 'first'", want: "777 777"},
		{text: "INSERT INTO keyless VALUES (LAST_INSERT_ID(555))", want: "555 555"},
		{text: "UPDATE keyless SET v = LAST_INSERT_ID(v + 1)", want: "556 556"},
		{text: "DELETE FROM keyless WHERE v = LAST_INSERT_ID(556)", want: "0 556"},
		{text: "INSERT INTO t (id, a) VALUES (LAST_INSERT_ID({+210}), 'x')", want: "+210 +210", filled: "1235 ="},
		{text: "UPDATE t SET ref = LAST_INSERT_ID(ref + 1) WHERE a = 'nobody'", want: "0 ="},
	}},
	{"REPLACE", []keyStep{
		{text: "REPLACE INTO t ({id,}a) VALUES ({k,}'first')", want: "+0 +0"},
		{text: "REPLACE INTO t (id, a) VALUES ({+200}, 'second')", want: "+200 =", bare: "0 ="},
		{text: "REPLACE t SET id = {+200}, a = 'third'", want: "+200 =", bare: "0 ="},
		{text: "REPLACE INTO t ({id,}a) VALUES ({k,}'third'), ({k,}'fourth')", want: "+201 +201", given: "+1 +1", filled: "# #"},
	}},
	{"INSERT IGNORE, all rows are ignored", []keyStep{
		{text: "INSERT IGNORE INTO t ({id,}a) VALUES ({k,}'first')", want: "0 =", given: "+0 +0", bare: "# #"},
		{text: "INSERT IGNORE INTO t ({id,}a) VALUES ({k,}'first'), ({k,}'second')", want: "0 =", given: "+1 +1", filled: "# #"},
		{text: "INSERT IGNORE INTO t (id, a) VALUES ({-100}, 'third')", want: "0 ="},
	}},
	{"INSERT IGNORE and ON DUPLICATE KEY UPDATE, a new row", []keyStep{
		{text: "INSERT IGNORE INTO t ({id,}a) VALUES ({k,}'x')", want: "+0 +0"},
		{text: "INSERT IGNORE INTO t ({id,}a, ref) VALUES ({k,}'y', 'word')", want: "+1 +1"},
		{text: "SHOW WARNINGS", want: "rows ="},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'z') ON DUPLICATE KEY UPDATE ref = 2", want: "+2 +2"},
		{text: "SELECT FOUND_ROWS()", want: "rows ="},
	}},
	{"INSERT IGNORE, the first row is ignored", []keyStep{
		{text: "INSERT IGNORE INTO t ({id,}a) VALUES ({k,}'first'), ({k,}'x')", want: "+0 +0", filled: "# #"},
	}},
	{"INSERT IGNORE, the second row is ignored", []keyStep{
		{text: "INSERT IGNORE INTO t ({id,}a) VALUES ({k,}'x'), ({k,}'first'), ({k,}'y')", want: "+0 +0", filled: "# #"},
	}},
	{"ON DUPLICATE KEY UPDATE, a row is changed", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'first') ON DUPLICATE KEY UPDATE ref = 2", want: "-100 =", given: "+0 +0", bare: "# #"},
		// The row is equal.
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'first') ON DUPLICATE KEY UPDATE ref = 2", want: "0 =", given: "+1 +1", bare: "# #"},
	}},
	{"ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'first') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", want: "-100 -100"},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'second') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), ref = 5", want: "-99 -99"},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", want: "+2 +2"},
	}},
	{"ON DUPLICATE KEY UPDATE, new rows first", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x'), ({k,}'first') ON DUPLICATE KEY UPDATE ref = 3", want: "+0 +0"},
	}},
	{"ON DUPLICATE KEY UPDATE, new rows last", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'first'), ({k,}'x') ON DUPLICATE KEY UPDATE ref = 4", want: "+0 +0", filled: "# #"},
	}},
	{"a duplicate", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'first')", want: "1062 =", given: "1062 #", filled: "1062 #"},
		{text: "INSERT INTO t (id, a) VALUES ({-100}, 'x')", want: "1062 ="},
	}},
	{"a duplicate behind a row that was made and is undone", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x'), ({k,}'first')", want: "1062 +0"},
		{text: "INSERT INTO t (id, a) VALUES ({+200}, 'x'), ({+201}, 'first')", want: "1062 ="},
	}},
	{"other errors", []keyStep{
		{text: "INSERT INTO t ({id,}a, nothing) VALUES ({k,}'x', 1)", want: "1054 ="},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x', 1)", want: "1136 ="},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}NULL)", want: "1048 =", given: "1048 #"},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}REPEAT('x', 30))", want: "1406 =", given: "1406 #", filled: "1406 # or 1406 ="},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x'", want: "1064 ="},
	}},
	{"INSERT ... SELECT", []keyStep{
		// Filled in, the numbers are counted off
		// (TestKeysOfInsertSelectAreFilledInAsAutoIncrementWould): the first one is that of a new
		// block.
		{text: "INSERT INTO t (a) SELECT CONCAT('new', a) FROM t WHERE a IN ('first', 'second')", want: "+0 +0", given: none, filled: none},
		{text: "INSERT INTO t (id, a) SELECT id + 1000, CONCAT('n', a) FROM t WHERE a IN ('first', 'second') ORDER BY id", want: "+901 =", given: none, bare: "0 ="},
		{text: "INSERT INTO t (a) SELECT a FROM t WHERE 0", want: "0 =", given: none},
	}},
	{"LAST_INSERT_ID() inside", []keyStep{
		{text: "SELECT LAST_INSERT_ID(42)", want: "rows 42"},
		{text: "INSERT INTO t ({id,}a, ref) VALUES ({k,}'x', {last}), ({k,}'y', {last} + 1)", want: "+0 +0"},
		{text: "INSERT INTO t ({id,}a, ref) VALUES ({k,}'z', LAST_INSERT_ID(99))", want: "+2 +2", given: "99 99"},
	}},
	{"assigned", []keyStep{
		{text: "SELECT LAST_INSERT_ID(42)", want: "rows 42"},
		{text: "SET last_insert_id = 66", want: "0 66"},
		{text: "SET @@session.identity = 67", want: "0 67"},
		{text: "SET insert_id = {+500}", want: "0 =", given: none, filled: none},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x')", want: "+500 +500", given: "+0 +0", filled: "# #"},
	}},
	{"a transaction that is undone", []keyStep{
		{text: "BEGIN", want: "0 ="},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x')", want: "+0 +0"},
		{text: "ROLLBACK", want: "0 ="},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x')", want: "+1 +1"},
	}},
	{"a transaction that is committed", []keyStep{
		{text: "START TRANSACTION", want: "0 ="},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x')", want: "+0 +0"},
		{text: "SAVEPOINT s", want: "0 ="},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'y')", want: "+1 +1"},
		{text: "ROLLBACK TO SAVEPOINT s", want: "0 ="},
		{text: "COMMIT", want: "0 ="},
	}},
	{"steps of ten", []keyStep{
		{text: "SET auto_increment_increment = 10, auto_increment_offset = 3", want: "0 ="},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x'), ({k,}'y')", want: "+3 +3", given: "+0 +0", filled: "# #"},
		{text: "SET auto_increment_increment = 1, auto_increment_offset = 1", want: "0 ="},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'z')", want: "+23 +23", given: "+2 +2", filled: "# #"},
	}},
	{"NO_AUTO_VALUE_ON_ZERO", []keyStep{
		{text: "SET @before = @@sql_mode, sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')", want: "0 ="},
		{text: "INSERT INTO t (id, a) VALUES (0, 'x')", want: "0 ="},
		{text: "INSERT INTO t (id, a) VALUES ({NULL}, 'y')", want: "+0 +0"},
		{text: "SET sql_mode = @before", want: "0 ="},
	}},
	{"stored code", []keyStep{
		{text: "SELECT LAST_INSERT_ID(42)", want: "rows 42"},
		{text: "INSERT INTO loud VALUES (1)", want: "0 ="},    // the trigger's value is undone
		{text: "SELECT made_too(9) > 0 AS f", want: "rows ="}, // a function's is undone, too
		{text: "CALL made('x')", want: "0 3"},                 // but a procedure's is not
		{text: "INSERT INTO t (ref, {id,}a) VALUES (made_too(5), {k,}'x')", want: "+0 +0"},
	}},
	{"LAST_INSERT_ID(expr) in a statement that changes nothing", []keyStep{
		{text: "SELECT LAST_INSERT_ID(43), LAST_INSERT_ID()", want: "rows 43"},
		{text: "SELECT LAST_INSERT_ID(44) + 1, LAST_INSERT_ID(45)", want: "rows 45"},
		{text: "SELECT a FROM t WHERE id = LAST_INSERT_ID({-100})", want: "rows -100"},
		{text: "SELECT LAST_INSERT_ID(id) FROM t ORDER BY id", want: "rows -99"},
		{text: "SELECT (SELECT LAST_INSERT_ID(46))", want: "rows 46"},
		{text: "SELECT 1 UNION SELECT LAST_INSERT_ID(47)", want: "rows 47"},
		{text: "SELECT IF(0, LAST_INSERT_ID(48), 0)", want: "rows ="},
		{text: "SELECT LAST_INSERT_ID('49')", want: "rows 49"},
		{text: "SELECT LAST_INSERT_ID(49.6)", want: "rows 50"},
		{text: "SELECT LAST_INSERT_ID(18446744073709551615)", want: "rows 18446744073709551615"},
		{text: "SELECT LAST_INSERT_ID(-1)", want: "rows 18446744073709551615"},
		{text: "SELECT LAST_INSERT_ID(NULL)", want: "rows 0"},
		{text: "DO LAST_INSERT_ID(51)", want: "0 51"},
		{text: "SET @x = LAST_INSERT_ID(52)", want: "0 52"},
		{text: "SELECT LAST_INSERT_ID(53) INTO @x", want: "0 53"},
		{text: "UPDATE t SET ref = 1 WHERE id = 0 AND LAST_INSERT_ID(54)", want: "54 54"},
		{text: "DELETE FROM keyless WHERE LAST_INSERT_ID(55) = 0", want: "0 55"},
		{text: "SELECT LAST_INSERT_ID(56), nothing", want: "1054 ="},
	}},
	{"COM_RESET_CONNECTION", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x')", want: "+0 +0"},
		{text: resetConnection, want: "0 0"},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'y')", want: "+1 +1"},
	}},
	{"COM_CHANGE_USER", []keyStep{
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'x')", want: "+0 +0"},
		{text: changeOfUser, want: "0 0"},
		{text: "INSERT INTO t ({id,}a) VALUES ({k,}'y')", want: "+1 +1"},
	}},
	{"a new connection", []keyStep{
		{text: "SELECT LAST_INSERT_ID(42)", want: "rows 42"},
		{text: newConnection, want: "0 0"},
	}},
}

// Steps without a statement.
const (
	resetConnection = "COM_RESET_CONNECTION"
	changeOfUser    = "COM_CHANGE_USER"
	newConnection   = "a new connection"
)

// askKeys asks for the values that an OK packet does not have.
const askKeys = "SELECT ROW_COUNT(), LAST_INSERT_ID(), @@last_insert_id, @@identity"

// keyForm is one way to write the rows of the table.
type keyForm struct {
	given bool // a number is given where AUTO_INCREMENT would make one
	cases bool // the table of cases says what is expected, as well as the direct run
	// filled: the column is bound to a sequence, and the oracle is AUTO_INCREMENT.
	filled bool
	bare   bool // the column through the proxy has no AUTO_INCREMENT
}

// texts returns a step as it is sent through the proxy and direct. first is the first number of the
// row, next the next number of the sequence.
func (f keyForm) texts(step string, first, next uint64) (proxied, direct string) {
	if !f.given {
		text := keyText(step, first, "LAST_INSERT_ID()", nil)
		return text, text
	}
	call := func() string { return "NEXTVAL(photos)" }
	n := next
	number := func() string {
		n++
		if n == next+1 {
			return fmt.Sprintf("LAST_INSERT_ID(%d)", next)
		}
		return fmt.Sprintf("CAST(%d AS UNSIGNED)", n-1)
	}
	return keyText(step, first, "LAST_INSERT_ID()", call), keyText(step, first, "42", number)
}

// expected is what a step must leave, as in keyStep; "" if the case does not say.
func (f keyForm) expected(s keyStep) string {
	switch {
	case f.given && !f.cases:
		return ""
	case f.given && s.given != "":
		return s.given
	case f.apart(s) != "":
		return f.apart(s)
	}
	return s.want
}

// apart is what a step must leave where keys that are filled in differ from those of
// AUTO_INCREMENT.
func (f keyForm) apart(s keyStep) string {
	switch {
	case !f.filled:
		return ""
	case f.bare && s.bare != "":
		return s.bare
	}
	return s.filled
}

var keyMark = regexp.MustCompile(`\{[^}]*\}`)

// keyText replaces marks; number writes a generated number, and is nil if the server generates it.
func keyText(step string, first uint64, last string, number func() string) string {
	return keyMark.ReplaceAllStringFunc(step, func(m string) string {
		switch m = m[1 : len(m)-1]; {
		case m[0] == '+' || m[0] == '-':
			n, _ := strconv.ParseInt(m, 10, 64)
			return strconv.FormatUint(first+uint64(n), 10)
		case m == "last":
			return last
		case m[len(m)-1] != ',' && m[len(m)-1] != '=': // a value
			if number == nil {
				return m
			}
			return number()
		case number == nil:
			return ""
		case m == "id=":
			return "id = " + number() + ", "
		case m == "k,":
			return number() + ", "
		default:
			return m + " "
		}
	})
}

// keyPair is a session through the proxy and one direct, in schemas that are alike.
type keyPair struct {
	*pair
	o        *oracle
	schemas  [2]string // through the proxy, direct
	caps     protocol.Capability
	prepared bool
	ask      [2]uint32 // ids of the prepared askKeys
	n        uint64    // of the row
}

func (o *oracle) keyPair(t *testing.T, prepared bool, autoIncrement [2]string) *keyPair {
	t.Helper()
	p := &keyPair{o: o, schemas: [2]string{o.Schemas[0], o.Servers[0].Schema(t)}, caps: allFraming, prepared: prepared}
	if prepared { // many drivers log in so, and then count rows that were equal already
		p.caps = endings["with EOF"] | protocol.FoundRows
	}
	for i, schema := range p.schemas {
		o.Servers[0].Exec(t, append([]string{"DROP DATABASE " + schema, "CREATE DATABASE " + schema, "USE " + schema}, keyTables(autoIncrement[i])...)...)
	}
	p.pair = &pair{t: t}
	p.login()
	return p
}

func (p *keyPair) login() {
	p.Proxy = p.o.Wire(p.t, p.o.Addr(), wireLogin{Schema: p.schemas[0], Capabilities: p.caps})
	p.Direct = p.o.Wire(p.t, p.o.Servers[0].Addr(), wireLogin{Schema: p.schemas[1], Capabilities: p.caps})
	p.prepareAsk()
}

func (p *keyPair) prepareAsk() {
	if !p.prepared {
		return
	}
	for i, w := range []*wire{p.Proxy, p.Direct} {
		p.ask[i] = binary.LittleEndian.Uint32(w.do(protocol.ComStmtPrepare, askKeys)[5:])
	}
}

// both runs statements on both connections, and ignores the answers.
func (p *keyPair) both(statements ...string) {
	p.t.Helper()
	for _, w := range []*wire{p.Proxy, p.Direct} {
		for _, s := range statements {
			if answer := w.query(s); answer[4] == 0xff {
				p.t.Fatalf("%s: %v", s, serverError(p.t, answer))
			}
		}
	}
}

var preparedValue = regexp.MustCompile(`'[a-z]\w*'`)

// send runs a text, in the prepared form with its words as parameters, and returns the answer
// without the statement's id.
func (p *keyPair) send(w *wire, text string) (answer []byte) {
	p.t.Helper()
	// No ping in between, because it would reset the status.
	if !p.prepared {
		w.send(packet(command(protocol.ComQuery, text)))
		return w.receive(protocol.ShapeResult, nil)
	}
	var args []argument
	w.send(packet(command(protocol.ComStmtPrepare, preparedValue.ReplaceAllStringFunc(text, func(value string) string {
		args = append(args, textArg(mysql.MYSQL_TYPE_VAR_STRING, strings.Trim(value, "'")))
		return "?"
	}))))
	answer = w.receive(protocol.ShapePrepare, nil)
	if answer[4] == 0xff {
		const unsupported = 1295
		if serverError(p.t, answer).Code == unsupported {
			w.send(packet(command(protocol.ComQuery, text)))
			answer = append(answer, w.receive(protocol.ShapeResult, nil)...)
		}
		return answer
	}
	id := binary.LittleEndian.Uint32(answer[5:])
	clear(answer[5:9])
	w.send(packet(execution(id, args, true)))
	answer = append(answer, w.receive(protocol.ShapeResult, nil)...)
	w.send(packet(binary.LittleEndian.AppendUint32([]byte{byte(protocol.ComStmtClose)}, id)))
	return answer
}

// run runs a step on both, and returns the last packet of each with the answers to askKeys.
func (p *keyPair) run(proxied, direct string) (got, want []byte) {
	p.t.Helper()
	switch proxied {
	case newConnection:
		p.Proxy.quit()
		p.Direct.quit()
		p.login()
		return p.run(resetConnection, "")
	case changeOfUser:
		for i, w := range []*wire{p.Proxy, p.Direct} {
			// Notices of the login differ, and other tests compare them.
			if ok := w.change(p.o.User, p.o.Password, p.schemas[i], ""); ok[protocol.HeaderSize] != 0 {
				p.t.Fatalf("%s: %v", changeOfUser, serverError(p.t, ok))
			}
		}
		p.prepareAsk()
		return p.run(resetConnection, "")
	case resetConnection:
		got, want = p.Proxy.do(protocol.ComResetConn, ""), p.Direct.do(protocol.ComResetConn, "")
		p.prepareAsk()
	default:
		got, want = p.send(p.Proxy, proxied), p.send(p.Direct, direct)
	}
	return got, bytes.ReplaceAll(want, []byte(p.schemas[1]), []byte(p.schemas[0])) // both schemas' names have the same length
}

// asked returns the answers to askKeys.
func (p *keyPair) asked() (got, want []byte) {
	p.t.Helper()
	for i, w := range []*wire{p.Proxy, p.Direct} {
		if p.prepared {
			w.send(packet(execution(p.ask[i], nil, false)))
		} else {
			w.send(packet(command(protocol.ComQuery, askKeys)))
		}
	}
	return p.Proxy.receive(protocol.ShapeResult, nil), p.Direct.receive(protocol.ShapeResult, nil)
}

// Checklist 28.
// Checklist 30.
func TestTheTableOfInsertIDs(t *testing.T) {
	const auto = "AUTO_INCREMENT"
	server := []*mysqltest.Server{mysqltest.Shared(t)}
	o := newOracle(t, setup{Servers: server})
	for _, c := range []struct {
		name   string
		form   keyForm
		tables [2]string // with AUTO_INCREMENT or without, for the table through the proxy and the direct one
	}{
		{"AUTO_INCREMENT", keyForm{}, [2]string{auto, auto}},
		{"NEXTVAL and AUTO_INCREMENT", keyForm{given: true, cases: true}, [2]string{auto, auto}},
		{"NEXTVAL", keyForm{given: true}, [2]string{}},
		{"filled in, with AUTO_INCREMENT", keyForm{filled: true}, [2]string{auto, auto}},
		{"filled in", keyForm{filled: true, bare: true}, [2]string{"", auto}},
	} {
		for _, how := range []string{"text", "prepared"} {
			t.Run(c.name+", "+how, func(t *testing.T) {
				o := o
				if c.form.filled {
					// A sequence of its own: explicit keys of one run are passed over in the next.
					o = newOracle(t, setup{Servers: server, Proxy: func(p *proxy.Options) {
						p.Bindings = []proxy.Binding{{Table: "t", Column: "id", Sequence: "photos"}}
					}})
				}
				p := o.keyPair(t, how == "prepared", c.tables)
				if c.form.filled {
					// The explicit keys are below what the proxy reserved.
					p.Proxy.query("SELECT NEXTVAL('photos')")
				}
				for _, row := range keyRows {
					p.runRow(c.form, row)
				}
				p.Proxy.quit()
				p.Direct.quit()
			})
		}
	}
}

// The key of an upsert becomes LAST_INSERT_ID() only if its row was inserted. The proxy brings it
// to the server when a statement asks, and nothing else may change by that.
func TestWhatAnUpsertWithAFilledKeyLeavesBehind(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(p *proxy.Options) {
		p.Bindings = []proxy.Binding{{Table: "t", Column: "id", Sequence: "photos"}}
	}})
	for _, prepared := range []bool{false, true} {
		p := o.keyPair(t, prepared, [2]string{"AUTO_INCREMENT", "AUTO_INCREMENT"})
		p.run("DO 1", fmt.Sprintf("INSERT INTO t (id, a) VALUES (%d, 'none')", o.nextNumber(t, "photos")-1))
		p.run("DO 1", "DELETE FROM t")
		n := 0
		for _, asks := range [][]string{
			{"SELECT ROW_COUNT()"},
			{"SELECT FOUND_ROWS()"},
			{"SELECT LAST_INSERT_ID()", "SELECT ROW_COUNT(), LAST_INSERT_ID()"},
			{"SELECT ROW_COUNT(), @@identity"},
			{"SELECT FOUND_ROWS(), LAST_INSERT_ID()"},
			{"SHOW WARNINGS", "SELECT ROW_COUNT(), LAST_INSERT_ID()"},
			{"DO 1", "SELECT ROW_COUNT(), LAST_INSERT_ID()"},
			{"SELECT a FROM t ORDER BY a LIMIT 2", "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()"},
			{"SELECT nothing", "SELECT ROW_COUNT(), LAST_INSERT_ID()"},
			{"INSERT INTO keyless VALUES (LAST_INSERT_ID())", "SELECT ROW_COUNT(), LAST_INSERT_ID()"},
			{"DELETE FROM t WHERE a = 'none'", "SELECT ROW_COUNT(), LAST_INSERT_ID()"},
			{"ping", "SELECT ROW_COUNT(), LAST_INSERT_ID()"},
			// Behind a CALL each upsert asks for columns, which changes FOUND_ROWS(): so it is last.
			{"CALL made('x')", "SELECT ROW_COUNT(), LAST_INSERT_ID()"},
		} {
			for _, upsert := range []string{
				"INSERT INTO t (a) VALUES ('%s') ON DUPLICATE KEY UPDATE ref = 1", "INSERT IGNORE INTO t (a) VALUES ('%s')",
				"INSERT IGNORE INTO t (a, ref) VALUES ('%s', 'word')", // with a warning
			} {
				n++
				steps := append([]string{"SELECT a FROM t ORDER BY a LIMIT 3", fmt.Sprintf(upsert, fmt.Sprint("u", n))}, asks...)
				for _, step := range steps {
					if step == "ping" {
						p.Proxy.ping(step)
						p.Direct.ping(step)
						continue
					}
					got, want := p.run(step, step)
					compare(t, fmt.Sprintf("prepared %t: %s", prepared, strings.Join(steps, "; "))+": "+step, got, want)
				}
			}
		}
		for _, step := range []string{"INSERT IGNORE INTO t (a) VALUES ('last')", "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()"} {
			if got := insertIDOf(p.send(p.Proxy, step)); strings.HasPrefix(step, "SELECT") && got != "1235" {
				t.Errorf("%s: got %s, want error 1235", step, got)
			}
		}
		p.Proxy.quit()
		p.Direct.quit()
	}
}

// runRow runs a row of cases and compares.
func (p *keyPair) runRow(form keyForm, row keyRow) {
	p.t.Helper()
	p.n++
	first := p.n * 10_000
	p.both("DELETE FROM t")
	switch {
	case form.given:
		first = p.o.nextNumber(p.t, "photos")
	case form.filled:
		first = p.o.nextNumber(p.t, "photos")
		// AUTO_INCREMENT starts with the same number.
		p.run("DO 1", "TRUNCATE TABLE t")
		p.run("DO 1", fmt.Sprintf("INSERT INTO t (id, a) VALUES (%d, 'none')", first-1))
		p.both("DELETE FROM t")
	default:
		p.both(fmt.Sprintf("INSERT INTO t (id, a) VALUES (%d, 'none')", first-1), "DELETE FROM t")
	}
	p.both(fmt.Sprintf("INSERT INTO t (id, a) VALUES (%d, 'first'), (%d, 'second')", first-100, first-99), "SELECT LAST_INSERT_ID(41)")
	_, asked := p.asked()
	same := true
	for _, s := range row.steps {
		if form.given && s.given == none || form.apart(s) == none {
			continue
		}
		next := first
		if form.given || form.filled {
			next = p.o.nextNumber(p.t, "photos")
		}
		proxied, direct := form.texts(s.text, first, next)
		what := row.name + ": " + proxied
		if direct != proxied {
			what += " (direct " + direct + ")"
		}
		got, want := p.run(proxied, direct)
		before := p.functionIn(asked)
		var gotAsked []byte
		gotAsked, asked = p.asked()
		if same = same && form.apart(s) == ""; !same {
			// From here on the two sides differ in this row.
			asked, want = gotAsked, got
		}
		compare(p.t, what, got, want)
		compare(p.t, what+": "+askKeys, gotAsked, asked)
		if expected := form.expected(s); expected != "" {
			got := insertIDOf(want) + " " + p.functionIn(asked)
			want := absolute(expected, first, next, before)
			if !slices.Contains(strings.Split(want, " or "), got) {
				p.t.Errorf("%s: got insert id and function %s, want %s", what, got, want)
			}
		}
	}
	if same {
		compareRows(p.t, p.pair, "SELECT * FROM t ORDER BY id")
	}
}

// absolute replaces the marks of what is expected by the numbers.
func absolute(expected string, first, next uint64, before string) string {
	words := strings.Fields(expected)
	for i, w := range words {
		switch w[0] {
		case '+', '-':
			n, _ := strconv.ParseInt(w, 10, 64)
			words[i] = strconv.FormatUint(first+uint64(n), 10)
		case '#':
			words[i] = strconv.FormatUint(next, 10)
		case '=':
			words[i] = before
		}
	}
	return strings.Join(words, " ")
}

// insertIDOf is the insert id of the OK that an answer ends with, "rows" or an error's
// number.
func insertIDOf(answer []byte) string {
	var last []byte
	for _, p := range split(answer) {
		last = p
	}
	switch {
	case len(last) == 0 || last[0] == 0xfe:
		return "rows"
	case last[0] == 0xff:
		return strconv.Itoa(int(binary.LittleEndian.Uint16(last[1:])))
	}
	_, n, _ := protocol.ReadLenEncInt(last[1:])
	id, _, _ := protocol.ReadLenEncInt(last[1+n:])
	return strconv.FormatUint(id, 10)
}

// functionIn returns LAST_INSERT_ID() of an answer to askKeys.
func (p *keyPair) functionIn(answer []byte) string {
	if !p.prepared {
		return p.Direct.decode(answer)[0][1]
	}
	packets := split(answer)
	row := packets[len(packets)-2]
	return strconv.FormatUint(binary.LittleEndian.Uint64(row[2+8:]), 10) // after ROW_COUNT()
}
