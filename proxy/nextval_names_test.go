package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
)

// Checklist 28.
func TestANameMeansTheSameSequenceInEveryCharacterSet(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	o.fresh(t)
	for _, name := range []string{"sequence", "sequence_options"} {
		o.Servers[0].Exec(t, "ALTER TABLE "+o.SequenceSchema+"."+name+" CONVERT TO CHARACTER SET utf8mb4")
	}
	for name, start := range map[string]uint64{"größe": 100, "漢字": 200} {
		if _, err := o.Sequences.Create(t.Context(), sequence.CreateOptions{Name: name, Start: start}); err != nil {
			t.Fatal(err)
		}
	}
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	want := map[string]int{"größe": 100, "漢字": 200}
	for _, test := range []struct{ charset, name, typed string }{
		{"utf8mb4", "größe", "größe"},
		{"utf8mb4", "größe", "Größe"},
		{"utf8mb3", "größe", "größe"},
		{"latin1", "größe", "gr\xf6\xdfe"},
		{"latin1", "größe", "GR\xd6\xdfE"},
		{"utf8mb4", "漢字", "漢字"},
		{"gbk", "漢字", "\x9dh\xd7\xd6"},
		{"latin2", "größe", "gr\xf6\xdfe"},
	} {
		w.query("SET NAMES " + test.charset)
		for _, text := range []string{
			"SELECT NEXTVAL('" + test.typed + "')", "SELECT NEXTVAL(`" + test.typed + "`) AS a LIMIT 1",
		} {
			answer := w.query(text)
			if packets := split(answer); packets[0][0] == 0xff {
				t.Errorf("%s: %q: got %v", test.charset, text, protocol.ParseServerError(packets[0]))
				continue
			}
			if got := w.rows(text)[0]; got != fmt.Sprint(want[test.name]+1) {
				t.Errorf("%s: %q: got %s, want %d", test.charset, text, got, want[test.name]+1)
			}
			want[test.name] += 2
		}
		// A prepared statement and an INSERT mean the same sequence.
		answer := w.do(protocol.ComStmtPrepare, "INSERT INTO photos (id) VALUES (NEXTVAL('"+test.typed+"'))")
		if answer[4] != 0 {
			t.Errorf("%s: prepare %q: got %v", test.charset, test.typed, serverError(t, answer))
			continue
		}
		w.do(protocol.ComStmtExecute, string(execution(binary.LittleEndian.Uint32(answer[5:]), nil, false)[1:]))
		if got := w.rows("SELECT LAST_INSERT_ID()")[0]; got != fmt.Sprint(want[test.name]) {
			t.Errorf("%s: prepared: got %s, want %d", test.charset, got, want[test.name])
		}
		want[test.name]++
	}
	for charset, name := range map[string]string{"ascii": "gr\xf6\xdfe", "gbk": "a\xff", "utf8mb4": "gr\xf6\xdfe"} {
		w.query("SET NAMES " + charset)
		for _, answer := range [][]byte{w.query("SELECT NEXTVAL('" + name + "')"), w.do(protocol.ComStmtPrepare, "SELECT NEXTVAL('"+name+"')"), w.query("CREATE SEQUENCE `" + name + "`")} {
			if e := serverError(t, answer); e.Code != 1235 || !strings.Contains(e.Message, "utf8mb4") {
				t.Errorf("%s: got %v, want 1235 that says what to do", charset, e)
			}
		}
	}
	w.query("SET NAMES latin1")
	w.query("CREATE SEQUENCE `\xe4\x80`")
	w.query("SET NAMES utf8mb4")
	if got := w.rows("SELECT NEXTVAL('ä€')")[0]; got != "1" {
		t.Errorf("a sequence made in latin1: got %s, want 1", got)
	}
}

func TestSpellingsOfOneSequenceInOneStatementGetNumbersInOrder(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	o.fresh(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	first := 0
	if _, err := fmt.Sscan(w.rows("SELECT NEXTVAL('photos')")[0], &first); err != nil {
		t.Fatal(err)
	}
	w.query("INSERT INTO photos (id) VALUES (NEXTVAL('photos')), (NEXTVAL('Photos')), (NEXTVAL('photos'))")
	if got := w.rows("SELECT LAST_INSERT_ID()")[0]; got != fmt.Sprint(first+1) {
		t.Errorf("got LAST_INSERT_ID() %s, want %d", got, first+1)
	}
	got := w.rows("SELECT NEXTVAL('photos'), NEXTVAL('PHOTOS'), NEXTVAL('photos')")
	if want := fmt.Sprintf("[%d %d %d]", first+4, first+5, first+6); strings.Join(strings.FieldsFunc(fmt.Sprint(got), func(r rune) bool { return r < '0' || r > '9' }), " ") != strings.Trim(want, "[]") {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestLongStatementsAreRewrittenWhole(t *testing.T) {
	o := newOracle(t, setup{}, manyTypes...)
	long := strings.Repeat("x", 3_000_000)
	o.run(t, []script{{"text", []string{
		"INSERT INTO many (i, id, l) VALUES ('" + long + "', «NEXTVAL('photos')», 1), ('', «NEXTVAL('photos')», LENGTH('" + long + "'))",
		insertIDs,
		manyRows,
	}}}, "packets without EOF")
	p := o.pairOfSchemas(t, allFraming)
	pp := o.prepare(t, p, "INSERT INTO many (i, id, l) VALUES (?, «NEXTVAL('photos')», ?)")
	pp.execute(true, textArg(mysql.MYSQL_TYPE_LONG_BLOB, long), unsigned(7))
	pp.execute(false, textArg(mysql.MYSQL_TYPE_LONG_BLOB, long[:100_000]), unsigned(8))
	p.query(insertIDs)
	pp.sameRows(manyRows)
}

// Checklist 18.
func TestACursorOverAPreparedStatementWithNumbers(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	p := o.pairOfSchemas(t, allFraming&^(protocol.DeprecateEOF|protocol.SessionTrack))
	pp := o.prepare(t, p, "SELECT «NEXTVAL('photos')» + ? AS a UNION ALL SELECT ?")
	args := []argument{integer(mysql.MYSQL_TYPE_LONGLONG, 1), integer(mysql.MYSQL_TYPE_LONGLONG, 2)}
	all := pp.direct(args)
	withCursor := func(id uint32, args []argument) []byte {
		b := execution(id, args, true)
		b[5] = 1 // CURSOR_TYPE_READ_ONLY
		return packet(b)
	}
	p.Proxy.send(withCursor(pp.id, args))
	got := p.Proxy.receive(protocol.ShapeCursor, nil)
	p.Direct.send(withCursor(pp.directID, all))
	compare(t, "execute with a cursor", got, p.Direct.receive(protocol.ShapeCursor, nil))
	fetch := func(w *wire, id uint32) []byte {
		return w.do(protocol.ComStmtFetch, string(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, id), 1)))
	}
	for range 3 {
		compare(t, "fetch", fetch(p.Proxy, pp.id), fetch(p.Direct, pp.directID))
	}
}
