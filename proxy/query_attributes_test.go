package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// attributePair is a pair that has agreed on query attributes, in a schema with a sequence s. The
// server has the function that returns a statement's attribute.
type attributePair struct {
	*pair
	e    *env
	next uint64
}

const attributeCaps = allFraming | protocol.QueryAttributes | protocol.LongPassword

// offers skips the test where the server lacks a capability.
func (e *env) offers(t testing.TB, want protocol.Capability, name string) {
	t.Helper()
	hello, ok := e.Shards.Routes().Greeting()
	if !ok || !hello.Capabilities.Has(want) {
		t.Skipf("%s has no %s", hello.Version, name)
	}
}

func newAttributePair(t *testing.T) *attributePair {
	e := newEnv(t, setup{Servers: []*mysqltest.Server{mysqltest.Start(t)}})
	e.offers(t, protocol.QueryAttributes, "query attributes")
	e.Servers[0].Exec(t, "INSTALL COMPONENT 'file://component_query_attributes'", "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT, trace VARCHAR(50))")
	const first = 70
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: first}); err != nil {
		t.Fatal(err)
	}
	return &attributePair{e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: attributeCaps}), e, first}
}

// text runs a text with attributes on both and compares; {n} stands for a number, in order: NEXTVAL
// through the proxy, LAST_INSERT_ID(n) direct.
func (p *attributePair) text(attrs, sql string) []byte {
	p.t.Helper()
	direct := sql
	for strings.Contains(direct, "{n}") {
		direct = strings.Replace(direct, "{n}", fmt.Sprintf("LAST_INSERT_ID(%d)", p.next), 1)
		p.next++
	}
	run := func(w *wire, sql string) []byte {
		w.send(packet(command(protocol.ComQuery, attrs+sql)))
		b := w.receive(protocol.ShapeResult, nil)
		w.ping(sql)
		return b
	}
	got, want := run(p.Proxy, strings.ReplaceAll(sql, "{n}", "NEXTVAL('s')")), run(p.Direct, direct)
	compare(p.t, fmt.Sprintf("%q with attributes %.60q", sql, attrs), got, want)
	return got
}

// Checklist 4.
func TestAttributesOfATextReachTheServer(t *testing.T) {
	p := newAttributePair(t)
	const read = "mysql_query_attribute_string('trace')"
	one, other := attributes("trace", "NEXTVAL('s')"), attributes("a", "b", "trace", "'; SELECT 1")
	if got := p.text(one, "SELECT "+read+" AS x"); !strings.Contains(string(got), "NEXTVAL('s')") {
		t.Errorf("got %q, want the attribute in it", got)
	}
	p.text(protocol.NoAttributes, "SELECT "+read+" AS x")
	p.text(other, "SELECT "+read+" AS x")
	p.text(one, "INSERT INTO t VALUES ({n}, "+read+")") // rewritten
	p.text(other, "INSERT INTO t VALUES ({n}, "+read+"), (-"+fmt.Sprint(p.next)+", "+read+")")
	p.text(protocol.NoAttributes, "SELECT LAST_INSERT_ID()")
	p.text(one, "SELECT LAST_INSERT_ID(), "+read+" AS x")
	p.text(one, "SET @x = "+read)
	p.text(protocol.NoAttributes, "SELECT @x")
	p.text(one, "SELECT 1; SELECT "+read+" AS x")
	p.text(one, "USE "+p.e.Schemas[0])
	p.text(one, "SELECT DATABASE()")
	p.text(one, "SELECT * FROM t ORDER BY 1, 2")
	p.rowsAreTwins()
	// The proxy's own statements on the connection have no attributes.
	if got := p.text(attributes("x", "y"), "SELECT {n} AS n"); !strings.Contains(string(got), fmt.Sprint(p.next-1)) {
		t.Errorf("got %q, want the number", got)
	}
	p.text(one, "SELECT LAST_INSERT_ID(), "+read+" AS x FROM t LIMIT 1")
}

// Checklist 4.
func TestMalformedAttributesAreTheServersToAnswer(t *testing.T) {
	p := newAttributePair(t)
	for _, c := range []struct{ attrs, sql string }{
		{"", ""},
		{"", "SELECT 1"},
		{"\x00", ""},
		{"\x00\x00", "SELECT 1"},
		{"\x00\x02", "SELECT 1"},
		{"\xff\x01", "SELECT 1"},
		{"\xfb\x01", "SELECT 1"},
		{"\xfe\x00\x00\x00\x00\x00\x00\x00\x00\x01", "SELECT {n} AS n"},
		{"\x01\x01\x00\x00\xfe\x00\x01a\x03xyz", "SELECT 1"},
		{"\x01\x01\x00\x02\xfe\x00\x01a\x03xyz", "SELECT {n} AS n"},
		{"\x01\x01\x00\x01\xfe\x00\x01a\x63xyz", "SELECT 1"},
		{"\x01\x01\x00\x01\xf4\x00\x01a\x01", "SELECT 1"},
		{"\x01\x01\x00\x01\xf3\x00\x01a\x01", "SELECT 1"},
		{"\x01\x01\x00\x01\x0d\x00\x01a\x03xyz", "SELECT 1"},
		{"\x01\x01\x00\x01\x06\x00\x01a", "SELECT 1"},
		{"\x01\x01\x01\x01\x06\x00\x01a", "SELECT {n} AS n"},
		{"\xfc\xff\xff\x01", "SELECT 1"},
		{protocol.NoAttributes, "SELECT 2"},
	} {
		p.text(c.attrs, c.sql)
	}
}

// A text counts as long where it exceeds a buffer, with its attributes or without.
func TestLongAttributesAreNoPartOfTheText(t *testing.T) {
	p := newAttributePair(t)
	long := attributes("trace", strings.Repeat("NEXTVAL('s') ", 20_000))
	p.text(long, "SELECT LENGTH(mysql_query_attribute_string('trace')) AS x")
	p.text(long, "INSERT INTO t VALUES ({n}, LENGTH(mysql_query_attribute_string('trace')))")
	p.text(long, "SELECT {n} AS n")
	p.text(protocol.NoAttributes, "SELECT * FROM t")
}

func TestTextsWithAttributesInOneWriteAreAnsweredInOrder(t *testing.T) {
	p := newAttributePair(t)
	var proxied, direct []piped
	for i := range 20 {
		a := attributes("trace", fmt.Sprint(i))
		add := func(through, server string) {
			proxied, direct = append(proxied, asText(a+through)), append(direct, asText(a+server))
		}
		add("SELECT mysql_query_attribute_string('trace') AS x", "SELECT mysql_query_attribute_string('trace') AS x")
		if i%3 == 0 {
			add("SELECT NEXTVAL('s') AS n", fmt.Sprintf("SELECT LAST_INSERT_ID(%d) AS n", p.next))
			p.next++
		}
		if i%5 == 0 {
			add("INSERT INTO t VALUES (NEXTVAL('s'), 1)", fmt.Sprintf("INSERT INTO t VALUES (LAST_INSERT_ID(%d), 1)", p.next))
			p.next++
		}
	}
	got, want := p.Proxy.pipeline(proxied), p.Direct.pipeline(direct)
	for i := range got {
		compare(t, fmt.Sprintf("%q", proxied[i].payload), got[i], want[i])
	}
}

// Checklist 4.
// Checklist 21.
func TestAttributesOfAnExecutionReachTheServer(t *testing.T) {
	p := newAttributePair(t)
	const read = "mysql_query_attribute_string('trace')"
	trace := []namedArgument{{"trace", textArg(mysql.MYSQL_TYPE_STRING, "abc")}}
	several := []namedArgument{{"n", integer(mysql.MYSQL_TYPE_LONGLONG, 5)}, {"no", null(mysql.MYSQL_TYPE_NULL)}, {"trace", textArg(mysql.MYSQL_TYPE_STRING, "d'ef")}}
	number := integer(mysql.MYSQL_TYPE_LONGLONG, 6)

	// Relayed without a change.
	for _, sql := range []string{"SELECT " + read + " AS x", "SELECT ? AS a, " + read + " AS x"} {
		s := p.prepare(sql)
		args := make([]argument, strings.Count(sql, "?"))
		for i := range args {
			args[i] = number
		}
		for _, attrs := range [][]namedArgument{nil, trace, several, nil} {
			s.same(protocol.ComStmtExecute, string(attributedExecution(0, args, attrs, true)[5:]))
		}
		s.same(protocol.ComStmtExecute, string(attributedExecution(0, args, nil, false)[5:]))
	}

	// With numbers among the parameters.
	for _, c := range []struct {
		sql  string
		args []argument
	}{
		{"INSERT INTO t VALUES ({n}, " + read + ")", nil},
		{"INSERT INTO t VALUES (? + {n}, CONCAT(?, " + read + "))", []argument{number, textArg(mysql.MYSQL_TYPE_STRING, "x")}},
		{"INSERT INTO t VALUES (?, " + read + "), ({n}, ?)", []argument{null(mysql.MYSQL_TYPE_LONGLONG), textArg(mysql.MYSQL_TYPE_STRING, "y")}},
	} {
		id := func(w *wire, sql string) uint32 {
			answer := w.do(protocol.ComStmtPrepare, sql)
			if answer[4] != 0 {
				t.Fatalf("%s: %v", sql, serverError(t, answer))
			}
			return binary.LittleEndian.Uint32(answer[5:])
		}
		proxied := id(p.Proxy, strings.ReplaceAll(c.sql, "{n}", "NEXTVAL('s')"))
		direct := id(p.Direct, strings.ReplaceAll(c.sql, "{n}", "LAST_INSERT_ID(?)"))
		at := strings.Count(c.sql[:strings.Index(c.sql, "{n}")], "?")
		run := func(attrs []namedArgument, rebound bool) {
			all := append(append(append([]argument(nil), c.args[:at]...), unsigned(p.next)), c.args[at:]...)
			p.next++
			p.Proxy.send(packet(attributedExecution(proxied, c.args, attrs, rebound)))
			got := p.Proxy.receive(protocol.ShapeResult, nil)
			p.Direct.send(packet(attributedExecution(direct, all, attrs, rebound)))
			want := p.Direct.receive(protocol.ShapeResult, nil)
			compare(t, fmt.Sprintf("execute %s with attributes %v", c.sql, attrs), got, want)
		}
		for _, attrs := range [][]namedArgument{trace, nil, several, trace} {
			run(attrs, true)
		}
		run(nil, false)
		// Without the flag the parameters are counted only where the statement has some.
		without := attributedExecution(proxied, c.args, nil, true)
		without[5] = 0
		if len(c.args) == 0 {
			without = without[:10]
		}
		p.Proxy.send(packet(without))
		if got := p.Proxy.receive(protocol.ShapeResult, nil); got[4] != 0 {
			t.Errorf("%s without the flag: %v", c.sql, serverError(t, got))
		}
		all := append(append(append([]argument(nil), c.args[:at]...), unsigned(p.next)), c.args[at:]...)
		p.next++
		p.Direct.send(packet(attributedExecution(direct, all, nil, true)))
		p.Direct.receive(protocol.ShapeResult, nil)
		// A malformed execution is an error, and takes no number.
		for _, cut := range [][]byte{
			without[:10:10],
			append(without[:10:10], 0xff),
			append(without[:10:10], 0xfe, 1, 2, 3, 4, 5, 6, 7, 8),
			append(without[:10:10], 0xfd, 0xff, 0xff, 0x00),
			append(without[:10:10], 0x05),
			append(without[:10:10], 0x05, 0, 1, 0xfe),
			append(without[:10:10], 0x05, 0, 0),
			append(without[:10:10], 0),
		} {
			if len(c.args) == 0 && len(cut) == 10 || len(c.args) == 0 && cut[10] == 0 {
				continue
			}
			cut[5] = protocol.ParameterCountAvailable
			p.Proxy.send(packet(cut))
			serverError(t, p.Proxy.receive(protocol.ShapeResult, nil))
		}
		run(trace, true)
	}
	p.rowsAreTwins()
}

// rowsAreTwins checks that the rows inserted through the proxy, with attributes in them, equal
// those inserted direct under the same number.
func (p *attributePair) rowsAreTwins() {
	p.t.Helper()
	_, all := p.Direct.result("SELECT COUNT(DISTINCT id), COUNT(DISTINCT trace) FROM t")
	_, rows := p.Direct.result("SELECT id, trace, COUNT(*) FROM t GROUP BY id, trace HAVING COUNT(*) % 2 = 1")
	if len(rows) > 0 || all[0][1] < "2" {
		p.t.Errorf("rows that only one of the two has inserted: got %v of %v, want none", rows, all)
	}
}
