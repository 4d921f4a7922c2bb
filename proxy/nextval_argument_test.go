package proxy_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

// The server has a parameter where the client has the one for the name: the server prepares and
// executes what a direct connection has with LAST_INSERT_ID(?).
func TestTheNameOfANextvalIsAParameter(t *testing.T) {
	o := newOracle(t, setup{}, manyTypes...)
	o.fresh(t)
	p := o.pairOfSchemas(t, allFraming)
	name := func(s string) argument { return textArg(mysql.MYSQL_TYPE_VAR_STRING, s) }
	other := []argument{textArg(mysql.MYSQL_TYPE_STRING, "x"), integer(mysql.MYSQL_TYPE_LONG, 7), null(mysql.MYSQL_TYPE_LONGLONG)}
	for _, test := range []struct {
		text, direct string
		args         []argument // through the proxy
		takes        uint64
		numbers      []int // places of the numbers among the direct arguments
	}{
		{"SELECT NEXTVAL(?) AS a", "SELECT LAST_INSERT_ID(?) AS a", []argument{name("photos")}, 1, []int{0}},
		{"SELECT NEXTVAL(?) AS a", "SELECT LAST_INSERT_ID(?) AS a", []argument{longData("photos")}, 1, []int{0}},
		{"SELECT NEXTVAL('photos', ?) AS a", "SELECT LAST_INSERT_ID(?) AS a", []argument{integer(mysql.MYSQL_TYPE_LONG, 12)}, 12, []int{0}},
		{"SELECT NEXTVAL('photos', ?) AS a", "SELECT LAST_INSERT_ID(?) AS a", []argument{integer(mysql.MYSQL_TYPE_TINY, 3)}, 3, []int{0}},
		{"SELECT NEXTVAL('photos', ?) AS a", "SELECT LAST_INSERT_ID(?) AS a", []argument{name("4")}, 4, []int{0}},
		{"SELECT NEXT ? VALUES FROM photos", "SELECT LAST_INSERT_ID(?) AS nextval", []argument{unsigned(5)}, 5, []int{0}},
		{
			"INSERT INTO many (i, id, l) VALUES (?, NEXTVAL(?), ?)", "INSERT INTO many (i, id, l) VALUES (?, LAST_INSERT_ID(?), ?)",
			[]argument{other[0], name("PHOTOS"), other[1]},
			1,
			[]int{1},
		},
		{
			"INSERT INTO many (id, i, l) VALUES (NEXTVAL(?), ?, ?), (NEXTVAL('photos'), ?, ?)", "INSERT INTO many (id, i, l) VALUES (LAST_INSERT_ID(?), ?, ?), ((? | 0), ?, ?)",
			[]argument{name("photos"), other[0], other[2], other[0], other[1]},
			2,
			[]int{0, 3},
		},
	} {
		got := p.Proxy.do(protocol.ComStmtPrepare, test.text)
		want := p.Direct.do(protocol.ComStmtPrepare, test.direct)
		if got[4] != 0 || want[4] != 0 {
			t.Errorf("prepare %s: got %q, direct %q", test.text, got, want)
			continue
		}
		id, directID := binary.LittleEndian.Uint32(got[5:]), binary.LittleEndian.Uint32(want[5:])
		if len(test.numbers) == 1 { // every parameter is the client's
			binary.LittleEndian.PutUint32(got[5:], 0)
			binary.LittleEndian.PutUint32(want[5:], 0)
			compare(t, "prepare "+test.text, got, want)
		}
		if n := int(binary.LittleEndian.Uint16(got[11:])); n != len(test.args) {
			t.Errorf("prepare %s: %d parameters are announced, want %d", test.text, n, len(test.args))
		}
		for range 2 {
			first := o.nextNumber(t, "photos")
			direct := slices.Clone(test.args)
			direct[test.numbers[0]] = unsigned(first)
			for i, at := range test.numbers[1:] {
				direct = slices.Insert(direct, at, unsigned(first+uint64(i)+1))
			}
			for i, a := range test.args {
				if a.long {
					p.Proxy.send(packet(longDataCommand(id, i, a.value[:2])))
					p.Proxy.send(packet(longDataCommand(id, i, a.value[2:])))
				}
			}
			p.Proxy.send(packet(execution(id, test.args, true)))
			got := p.Proxy.receive(protocol.ShapeResult, nil)
			p.Direct.send(packet(execution(directID, direct, true)))
			compare(t, "execute "+test.text, got, p.Direct.receive(protocol.ShapeResult, nil))
			if after := o.nextNumber(t, "photos"); after != first+test.takes {
				t.Errorf("%s: %d numbers were taken, want %d", test.text, after-first, test.takes)
			}
		}
	}
	compareRows(t, p, manyRows)
	compareRows(t, p, "SELECT LAST_INSERT_ID()")

	// An argument that is no name or no count takes no number.
	before := o.nextNumber(t, "photos")
	for _, test := range []struct {
		text string
		args []argument
		code uint16
	}{
		{"SELECT NEXTVAL(?)", []argument{null(mysql.MYSQL_TYPE_VAR_STRING)}, 1210},
		{"SELECT NEXTVAL(?)", []argument{null(mysql.MYSQL_TYPE_NULL)}, 1210},
		{"SELECT NEXTVAL(?)", []argument{name("")}, 1210},
		{"SELECT NEXTVAL(?)", []argument{unsigned(5)}, 1210},
		{"SELECT NEXTVAL(?)", []argument{name("nobody")}, 4091},
		{"SELECT NEXTVAL(?)", []argument{name(strings.Repeat("x", 5000))}, 1210},
		{"SELECT NEXTVAL(?)", []argument{longData(strings.Repeat("x", 100_000))}, 1210},
		{"SELECT NEXTVAL(?)", []argument{name("gr\xff\xfe")}, 1235},
		{"SELECT NEXTVAL('photos', ?)", []argument{unsigned(0)}, 1210},
		{"SELECT NEXTVAL('photos', ?)", []argument{unsigned(1_000_001)}, 1210},
		{"SELECT NEXTVAL('photos', ?)", []argument{integer(mysql.MYSQL_TYPE_TINY, -1)}, 1210},
		{"SELECT NEXTVAL('photos', ?)", []argument{integer(mysql.MYSQL_TYPE_LONGLONG, -1)}, 1210},
		{"SELECT NEXTVAL('photos', ?)", []argument{null(mysql.MYSQL_TYPE_LONG)}, 1210},
		{"SELECT NEXTVAL('photos', ?)", []argument{double(5)}, 1210},
		{"SELECT NEXTVAL('photos', ?)", []argument{name("5 ")}, 1210},
		{"INSERT INTO many (id, i) VALUES (NEXTVAL('photos'), 1), (NEXTVAL(?), 2)", []argument{null(mysql.MYSQL_TYPE_STRING)}, 1210},
	} {
		answer := p.Proxy.do(protocol.ComStmtPrepare, test.text)
		if answer[4] != 0 {
			t.Errorf("prepare %s: got %v", test.text, serverError(t, answer))
			continue
		}
		id := binary.LittleEndian.Uint32(answer[5:])
		if test.args[0].long {
			p.Proxy.send(packet(longDataCommand(id, 0, test.args[0].value)))
		}
		p.Proxy.send(packet(execution(id, test.args, true)))
		if e := serverError(t, p.Proxy.receive(protocol.ShapeResult, nil)); e.Code != test.code {
			t.Errorf("%s with %x: got %v, want %d", test.text, test.args[0].value[:min(10, len(test.args[0].value))], e, test.code)
		}
	}
	if after := o.nextNumber(t, "photos"); after != before {
		t.Errorf("%d numbers were taken by executions that failed", after-before)
	}
}

func TestNamesAndValuesAreParametersWhereNoServerIs(t *testing.T) {
	e := newEnv(t, setup{Shards: noShards})
	c := e.Conn(t, "", nil)
	exec(t, c, "CREATE SEQUENCE photos")
	for _, test := range []struct {
		query string
		args  []any
		want  sql.NullInt64
	}{
		{"SELECT LASTVAL(?)", []any{"photos"}, sql.NullInt64{}},
		{"SELECT NEXTVAL(?)", []any{"photos"}, sql.NullInt64{Int64: 1, Valid: true}},
		{"SELECT NEXTVAL(?, ?) AS a", []any{"photos", 10}, sql.NullInt64{Int64: 2, Valid: true}},
		{"SELECT LASTVAL(?)", []any{"photos"}, sql.NullInt64{Int64: 11, Valid: true}},
		{"SELECT SETVAL(?, ?)", []any{"photos", 500}, sql.NullInt64{Int64: 500, Valid: true}},
		{"SELECT SETVAL(photos, ?, 0)", []any{"600"}, sql.NullInt64{Int64: 600, Valid: true}},
		{"SELECT SETVAL(photos, ?)", []any{-5}, sql.NullInt64{}},
		{"SELECT SETVAL(photos, ?)", []any{uint16(7)}, sql.NullInt64{}},
		{"SELECT NEXT ? VALUES FROM photos", []any{2}, sql.NullInt64{Int64: 600, Valid: true}},
		{"SELECT NEXTVAL(photos)", nil, sql.NullInt64{Int64: 602, Valid: true}},
	} {
		stmt, err := c.PrepareContext(t.Context(), test.query)
		if err != nil {
			t.Errorf("prepare %s: %v", test.query, err)
			continue
		}
		var got sql.NullInt64
		if err := stmt.QueryRow(test.args...).Scan(&got); err != nil || got != test.want {
			t.Errorf("%s %v: got %v, %v, want %v", test.query, test.args, got, err, test.want)
		}
		stmt.Close()
	}
	w := e.Wire(t, e.Addr(), wireLogin{})
	answer := w.do(protocol.ComStmtPrepare, "SELECT NEXTVAL(?) AS a")
	id := binary.LittleEndian.Uint32(answer[5:])
	execute := func(args ...argument) []byte {
		w.send(packet(execution(id, args, true)))
		return w.receive(protocol.ShapeResult, nil)
	}
	long := longData("photos")
	w.send(packet(longDataCommand(id, 0, []byte("nobody"))))
	w.do(protocol.ComStmtReset, string(answer[5:9]))
	for range 2 { // long data lives until the execution
		w.send(packet(longDataCommand(id, 0, long.value[:1])))
		w.send(packet(longDataCommand(id, 0, long.value[1:])))
		if got := execute(long); got[4] == 0xff {
			t.Errorf("long data: got %v", serverError(t, got))
		}
	}
	w.send(packet(longDataCommand(id, 0, bytes.Repeat([]byte("x"), 1_000_000))))
	for _, test := range []struct {
		arg  argument
		code uint16
	}{{long, 1210}, {null(mysql.MYSQL_TYPE_VAR_STRING), 1210}, {unsigned(5), 1210}, {textArg(mysql.MYSQL_TYPE_VAR_STRING, "nobody"), 4091}} {
		if e := serverError(t, execute(test.arg)); e.Code != test.code {
			t.Errorf("%x: got %v, want %d", test.arg.value[:min(8, len(test.arg.value))], e, test.code)
		}
	}
	for _, payload := range []string{"\x00\x01\x00\x00\x00", "\x00\x01\x00\x00\x00\x00\x01\xfd\x00", "\x00\x01\x00\x00\x00\x00\x01\xfd\x00\x09abc"} {
		if got := w.do(protocol.ComStmtExecute, string(answer[5:9])+payload); got[4] != 0xff {
			t.Errorf("%x: got %x, want an error", payload, got)
		}
	}
	if got := execute(textArg(mysql.MYSQL_TYPE_STRING, "photos")); got[4] == 0xff {
		t.Errorf("after errors: got %v", serverError(t, got))
	}
}

func TestTheDriverPreparesNamesAndCounts(t *testing.T) {
	o := newOracle(t, setup{}, manyTypes...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	next := o.nextNumber(t, "photos")
	number := func(query string, args ...any) (n uint64) {
		t.Helper()
		if err := c.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
			t.Errorf("%s: %v", query, err)
		}
		return n
	}
	for _, test := range []struct {
		query string
		args  []any
		takes uint64
	}{
		{"SELECT NEXTVAL(?)", []any{"photos"}, 1},
		{"SELECT NEXTVAL(?)", []any{[]byte("photos")}, 1},
		{"SELECT NEXTVAL(?, ?)", []any{"photos", 5}, 5},
		{"SELECT NEXTVAL(?, 7)", []any{"photos"}, 7},
		{"SELECT NEXTVAL(photos, ?) + ? - ?", []any{"8", 1, 1}, 8},
		{"SELECT NEXTVAL(?, ?)", []any{"photos", uint8(2)}, 2},
	} {
		if got := number(test.query, test.args...); got != next {
			t.Errorf("%s %v: got %d, want %d", test.query, test.args, got, next)
		}
		next += test.takes
	}
	result, err := c.ExecContext(t.Context(), "INSERT INTO many (i, id, l) VALUES (?, NEXTVAL(?, ?), ?), (?, NEXTVAL('photos'), ?)", "x", "photos", 3, 1, "y", 2)
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := result.LastInsertId(); uint64(id) != next {
		t.Errorf("insert id: got %d, want %d", id, next)
	}
	if got, want := value(t, c, "SELECT GROUP_CONCAT(i, ' ', id, ' ', l ORDER BY l) FROM many"), fmt.Sprintf("x %d 1,y %d 2", next, next+3); got != want {
		t.Errorf("rows: got %s, want %s", got, want)
	}
	if err := c.QueryRowContext(t.Context(), "SELECT NEXTVAL(?)", sql.NullString{}).Scan(new(uint64)); err == nil {
		t.Error("NULL for a name: got no error, want one")
	}
}

func TestTheNameOfANextvalIsAParameterOfABulkExecution(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	o.offers(t, protocol.BulkOperations, "bulk execution")
	o.fresh(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0], Capabilities: allFraming | protocol.BulkOperations})
	answer := w.do(protocol.ComStmtPrepare, "INSERT INTO photos (title, id) VALUES (?, NEXTVAL(?, ?))")
	id := string(answer[5:9])
	row := func(title, name string, count uint32) string {
		return bulkText(title) + bulkText(name) + bulkLong(count)
	}
	next := o.nextNumber(t, "photos")
	for range 2 {
		if answer := w.do(protocol.ComStmtBulkExecute, id+bulkRows(0, typeString+typeString+typeLong, row("a", "photos", 1), row("b", "PHOTOS", 5), row("c", "photos", 1))); answer[4] != 0 {
			t.Fatalf("bulk execution: %v", serverError(t, answer))
		}
		if got, want := w.rows(fmt.Sprintf("SELECT GROUP_CONCAT(title, id ORDER BY id) FROM photos WHERE id >= %d", next))[0], fmt.Sprintf("a%d,b%d,c%d", next, next+1, next+6); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		next += 7
	}
	for _, rows := range []string{
		bulkText("a") + bulkNull + bulkLong(1), row("a", "photos", 1) + row("a", "photos", 0), bulkText("a") + bulkDefault + bulkLong(1),
	} {
		if e := serverError(t, w.do(protocol.ComStmtBulkExecute, id+bulkRows(0, typeString+typeString+typeLong, rows))); e.Code != 1210 {
			t.Errorf("%q: got %v, want 1210", rows, e)
		}
	}
	if after := o.nextNumber(t, "photos"); after != next {
		t.Errorf("%d numbers were taken by executions that failed", after-next)
	}
}
