package proxy_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// A SELECT ... FROM with NEXTVAL runs through the proxy, and direct with LAST_INSERT_ID(2^64-1) for
// the first call and CAST(2^64-1 AS UNSIGNED) for the others. The answers must be equal, with the
// sequences' numbers in place of that constant.

// rowCalls returns the two texts of one with «calls», and the sequences of the calls.
func rowCalls(text string) (proxied, direct string, sequences []string) {
	proxied = markedCall.ReplaceAllString(text, "$1")
	calls := markedCall.FindAllStringSubmatchIndex(text, -1)
	from := 0
	var b strings.Builder
	for i, at := range calls {
		b.WriteString(text[from:at[0]])
		call, rest := text[at[2]:at[3]], text[at[1]:]
		constant := "CAST(18446744073709551615 AS UNSIGNED)"
		if i == 0 {
			constant = "LAST_INSERT_ID(18446744073709551615)"
		}
		b.WriteString(constant)
		if !strings.HasPrefix(rest, " AS ") {
			b.WriteString(" AS `" + call + "`")
		}
		name := "photos"
		if strings.Contains(call, "other") {
			name = "other"
		}
		sequences = append(sequences, name)
		from = at[1]
	}
	b.WriteString(text[from:])
	return proxied, b.String(), sequences
}

// withNumbers returns an answer with numbers in place of the constant; next are the sequences' next
// numbers. last is the first column of the last row.
func withNumbers(answer []byte, binaryRows bool, sequences []string, next map[string]uint64) (filled []byte, last uint64) {
	constant := []byte("\x1418446744073709551615")
	if binaryRows {
		constant = bytes.Repeat([]byte{0xff}, 8)
	}
	num := answer[3]
	call := 0
	packets := split(answer)
	for i := 0; i < len(packets); i++ {
		p := packets[i]
		for full := p; len(full) == protocol.MaxFragment; {
			i++
			full = packets[i]
			p = append(p[:len(p):len(p)], full...)
		}
		parts := bytes.Split(p, constant)
		p = parts[0]
		for _, part := range parts[1:] {
			n := next[sequences[call%len(sequences)]]
			next[sequences[call%len(sequences)]]++
			if call%len(sequences) == 0 {
				last = n
			}
			call++
			if binaryRows {
				p = binary.LittleEndian.AppendUint64(p[:len(p):len(p)], n)
			} else {
				p = protocol.AppendLenEncBytes(p[:len(p):len(p)], strconv.FormatUint(n, 10))
			}
			p = append(p, part...)
		}
		filled, num = protocol.AppendPacket(filled, p, num)
	}
	return filled, last
}

// sameFilled runs a text with «calls» on both and compares. last is as for withNumbers.
func (o *oracle) sameFilled(t testing.TB, p *pair, text string) (answer []byte, last uint64) {
	t.Helper()
	proxied, direct, sequences := rowCalls(text)
	next := map[string]uint64{"photos": o.nextNumber(t, "photos"), "other": o.nextNumber(t, "other")}
	want, last := withNumbers(p.Direct.query(direct), false, sequences, next)
	got := p.Proxy.query(proxied)
	compare(t, text, got, want)
	o.sameNext(t, text, next)
	return got, last
}

// sameNext checks that no number was taken for which there is no row.
func (o *oracle) sameNext(t testing.TB, what string, next map[string]uint64) {
	t.Helper()
	for name, want := range next {
		if got := o.nextNumber(t, name); got != want {
			t.Errorf("%s: the next number of %s: got %d, want %d", what, name, got, want)
		}
	}
}

// rowTables are tables of 1500 rows of many types.
func rowTables(server *mysqltest.Server) []string {
	return []string{
		"CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(300), b BLOB, c DATETIME(6), d DOUBLE, e YEAR, f DECIMAL(20,5), g TIME, h SMALLINT, i TINYINT, j FLOAT, k MEDIUMINT, l BIT(9), m DATE) ENGINE=InnoDB",
		"INSERT INTO t SELECT seq, REPEAT('x', seq % 300), IF(seq % 3 = 0, NULL, REPEAT('\\0', seq % 7)), '2020-01-02 03:04:05.6', seq / 7, 2000, seq / 3, IF(seq % 2, '10:11:12', '00:00:00'), " +
			"IF(seq % 5 = 0, NULL, seq % 77), 7, 0.5, 70, b'101', IF(seq % 4, '2001-02-03', NULL) FROM " + server.Numbers(1500),
		"CREATE VIEW v AS SELECT id, a FROM t WHERE id < 40",
		"CREATE FUNCTION with_cursor() RETURNS INT DETERMINISTIC READS SQL DATA BEGIN DECLARE c CURSOR FOR SELECT 1; OPEN c; RETURN 1; END",
	}
}

// rowTexts are SELECTs whose rows get numbers.
var rowTexts = []string{
	"SELECT «NEXTVAL('photos')», a FROM t ORDER BY id",
	"SELECT id, a, «NEXTVAL('photos')» AS n, b FROM t ORDER BY id DESC LIMIT 7",
	"SELECT «NEXTVAL('photos')», «NEXTVAL(photos)» AS x, id, «NEXTVAL('other')» FROM t WHERE id > 5 ORDER BY a, id",
	"SELECT *, «NEXTVAL('photos')» FROM t ORDER BY id",
	"SELECT «NEXTVAL('photos')», t.* FROM t ORDER BY id LIMIT 100",
	"SELECT «NEXTVAL('photos')», t.* FROM t LIMIT 0",
	"SELECT «NEXTVAL('photos')» AS n, id, x FROM t, (SELECT with_cursor() AS x) d ORDER BY id LIMIT 9",
	"SELECT «NEXTVAL('photos')» FROM t WHERE id < 0",
	"SELECT «NEXTVAL('photos')», COUNT(*), SUM(id) FROM t",
	"SELECT «NEXTVAL('photos')», h, COUNT(*) FROM t GROUP BY h ORDER BY h",
	"SELECT h % 3, «NEXTVAL('photos')», COUNT(*) FROM t GROUP BY h % 3 WITH ROLLUP",
	"SELECT «NEXTVAL('photos')» AS x, h, COUNT(*) AS c FROM t GROUP BY 2 HAVING c > 10 ORDER BY 3, 2",
	"SELECT SQL_CALC_FOUND_ROWS «NEXTVAL('photos')», a FROM t ORDER BY id LIMIT 3",
	"SELECT SQL_NO_CACHE ALL «NEXTVAL('photos')» AS n, id FROM t WHERE id < 100 ORDER BY t.id FOR UPDATE",
	"SELECT x.id, «NEXTVAL('photos')», y.* FROM t x JOIN t y ON y.id = x.id + 1 LEFT JOIN t z ON z.id = x.id + 1400 WHERE x.id < 300 ORDER BY x.id",
	"WITH c AS (SELECT * FROM t WHERE id < 9) SELECT c.a, «NEXTVAL('photos')» FROM c ORDER BY c.id",
	"SELECT «NEXTVAL('photos')», ROW_NUMBER() OVER (ORDER BY id) FROM t ORDER BY id",
	"SELECT «NEXTVAL('photos')», v.* FROM v ORDER BY 2",
	// It has warnings.
	"SELECT CAST('x' AS SIGNED), «NEXTVAL('photos')» FROM t WHERE id < 9",
	// It has an error in mid-result.
	"SELECT «NEXTVAL('photos')», (SELECT 1 UNION SELECT IF(t.id = 1200, 2, 1)) FROM t",
	// It is an error.
	"SELECT «NEXTVAL('photos')», nothing FROM t",
	// It has subqueries and an alias with a space.
	"SELECT «NEXTVAL('photos')» AS `a b`, (SELECT MAX(id) FROM t) AS m FROM (SELECT 1 AS one UNION SELECT 2) d ; ",
}

func TestEachRowOfASelectGetsANumberOfItsOwn(t *testing.T) {
	server := mysqltest.Shared(t)
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, rowTables(server)...)
	o.fresh(t)
	all := framings()
	for i, caps := range []protocol.Capability{allFraming, all[0], all[1] | protocol.SessionTrack, allFraming | protocol.OptionalMetadata | protocol.QueryAttributes} {
		if server.IsMariaDB() {
			caps &^= protocol.OptionalMetadata | protocol.QueryAttributes
		}
		p := o.Pair(t, 0, wireLogin{Schema: o.Schemas[0], Capabilities: caps})
		id := "0"
		for _, text := range rowTexts {
			answer, last := o.sameFilled(t, p, text)
			p.query("SELECT FOUND_ROWS(), ROW_COUNT(), @@warning_count")
			if last != 0 {
				id = strconv.FormatUint(last, 10)
			}
			if got := p.Proxy.rows("SELECT LAST_INSERT_ID()")[0]; got != id {
				t.Errorf("LAST_INSERT_ID() after %s: got %s, want %s", text, got, id)
			}
			if len(answer) == 0 {
				t.Errorf("%s: no answer", text)
			}
		}
		// Several in a pipeline, and one after a number that the proxy answers itself.
		o.sameFilled(t, p, rowTexts[3])
		p.Proxy.rows("SELECT NEXTVAL('photos')")
		o.sameFilled(t, p, rowTexts[4])
		if i == 0 {
			for _, set := range []string{"SET sql_select_limit = 3", "SET sql_select_limit = 0"} {
				p.query(set)
				o.sameFilled(t, p, rowTexts[0])
			}
			p.query("SET sql_select_limit = DEFAULT")
			p.query("SET character_set_results = NULL")
			o.sameFilled(t, p, rowTexts[3])
			p.query("SET character_set_results = utf16")
			if !server.IsMariaDB() { // MySQL sends digits as they are
				o.sameFilled(t, p, rowTexts[3])
			} else if e := serverError(t, p.Proxy.query("SELECT NEXTVAL('photos') FROM t")); e.Code != 1235 {
				t.Errorf("in utf16: got %v, want 1235", e)
			}
			p.query("SET NAMES utf8mb4")
		}
		if caps.Has(protocol.OptionalMetadata) {
			p.query("SET resultset_metadata = NONE")
			o.sameFilled(t, p, rowTexts[3])
			p.query("SET resultset_metadata = FULL")
		}
		if caps.Has(protocol.SessionTrack) {
			p.query("SET SESSION session_track_transaction_info = 'CHARACTERISTICS'")
			p.query("BEGIN")
			o.sameFilled(t, p, rowTexts[2])
			p.query("ROLLBACK")
		}
	}
}

func TestEachRowOfAPreparedSelectGetsANumberOfItsOwn(t *testing.T) {
	server := mysqltest.Shared(t)
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, rowTables(server)...)
	o.fresh(t)
	all := framings()
	for _, caps := range []protocol.Capability{allFraming, all[0], allFraming | protocol.CacheMetadata | protocol.ExtendedMetadata} {
		if !server.IsMariaDB() {
			caps &^= protocol.CacheMetadata | protocol.ExtendedMetadata
		}
		p := o.Pair(t, 0, wireLogin{Schema: o.Schemas[0], Capabilities: caps})
		texts := append([]string{
			"SELECT «NEXTVAL('photos')» AS n, t.* FROM t WHERE id > ? ORDER BY id LIMIT ?",
			"SELECT id, ?, «NEXTVAL('photos')» AS n FROM t WHERE id > ? ORDER BY id",
		}, rowTexts...)
		for _, text := range texts {
			proxied, direct, sequences := rowCalls(text)
			got, want := p.Proxy.do(protocol.ComStmtPrepare, proxied), p.Direct.do(protocol.ComStmtPrepare, direct)
			if want[4] != 0 {
				compare(t, text, got, want)
				continue
			}
			id, directID := binary.LittleEndian.Uint32(got[5:]), binary.LittleEndian.Uint32(want[5:])
			clear(got[5:9])
			clear(want[5:9])
			compare(t, "prepare "+text, got, want)
			args := make([]argument, 0, 2)
			for range strings.Count(text, "?") {
				args = append(args, integer(3, 20))
			}
			for i := range 3 {
				execute := func(id uint32) string {
					b := execution(id, args, i == 0)
					b[5] = byte(2 * i) // flags that ask for no cursor
					return string(b[1:])
				}
				next := map[string]uint64{"photos": o.nextNumber(t, "photos"), "other": o.nextNumber(t, "other")}
				want, _ := withNumbers(p.Direct.do(protocol.ComStmtExecute, execute(directID)), true, sequences, next)
				got := p.Proxy.do(protocol.ComStmtExecute, execute(id))
				compare(t, "execute "+text, got, want)
				o.sameNext(t, text, next)
				p.query("SELECT FOUND_ROWS(), ROW_COUNT(), @@warning_count")
			}
			cursor := execution(id, args, true)
			cursor[5] = 1
			if e := serverError(t, p.Proxy.do(protocol.ComStmtExecute, string(cursor[1:]))); e.Code != 1235 || !strings.Contains(e.Message, "cursor") {
				t.Errorf("%s: with a cursor: got %v, want 1235", text, e)
			}
		}
		// With LAST_INSERT_ID(), and after changes of the columns.
		p.Proxy.query("SELECT LAST_INSERT_ID(77)")
		id := binary.LittleEndian.Uint32(p.Proxy.do(protocol.ComStmtPrepare, "SELECT *, NEXTVAL('photos'), LAST_INSERT_ID() FROM t ORDER BY id LIMIT 2")[5:])
		before := o.nextNumber(t, "photos")
		for i, change := range []string{"DO 0", "ALTER TABLE t ADD COLUMN z VARCHAR(20) DEFAULT 'z' FIRST", "ALTER TABLE t DROP COLUMN z"} {
			o.Servers[0].Exec(t, "USE "+o.Schemas[0], change)
			got := p.Proxy.do(protocol.ComStmtExecute, string(execution(id, nil, false)[1:]))
			first, previous := before+2*uint64(i), before+2*uint64(i)-1
			if i == 0 {
				previous = 77
			}
			for row := range uint64(2) {
				want := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, first+row), previous)
				if !bytes.Contains(got, want) {
					t.Errorf("after %s: row %d has not the numbers %d and %d: %x", change, row, first+row, previous, got)
				}
			}
		}
	}
}

func TestLongRowsGetNumbersInBoundedMemory(t *testing.T) {
	mysqltest.MovesMegabytes(t, "rows of many megabytes")
	server := mysqltest.Start(t, "--max-allowed-packet=64M")
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
	o.fresh(t)
	p := o.Pair(t, 0, wireLogin{Schema: o.Schemas[0]})
	for _, size := range []int{protocol.MaxFragment - 40, protocol.MaxFragment - 10, 2*protocol.MaxFragment - 12} {
		text := fmt.Sprintf("SELECT REPEAT('x', %d), «NEXTVAL('photos')», id FROM t", size)
		proxied, direct, sequences := rowCalls(text)
		next := map[string]uint64{"photos": o.nextNumber(t, "photos")}
		filled, _ := withNumbers(p.Direct.query(direct), false, sequences, next)
		want := sha256.Sum256(filled)
		if got := sha256.Sum256(p.Proxy.query(proxied)); got != want {
			t.Errorf("rows of %d bytes: answers differ", size)
		}
		o.sameNext(t, text, next)
	}
}

func TestARowThatThereIsNoNumberForIsAnErrorInItsPlace(t *testing.T) {
	server := mysqltest.Shared(t)
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, rowTables(server)...)
	o.fresh(t)
	for _, test := range []struct {
		name, text string
		binary     bool
	}{
		{"short", "SELECT NEXTVAL('short'), id FROM t ORDER BY id", false},
		{"long", "SELECT NEXTVAL('long'), x.*, y.* FROM t x, t y, t z", false},
		{"slow", "SELECT NEXTVAL('slow'), REPEAT('x', 1000), SLEEP(IF(seq = 300, 100, 0)) FROM (SELECT seq FROM " + server.Numbers(301) + ") AS d", false},
		{"prepared", "SELECT NEXTVAL('prepared'), x.*, y.* FROM t x, t y, t z", true},
	} {
		const rows = 30
		if _, err := o.Sequences.Create(t.Context(), sequence.CreateOptions{Name: test.name, Start: math.MaxUint64 - rows}); err != nil {
			t.Fatal(err)
		}
		w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
		connection := w.rows("SELECT @@pseudo_thread_id")[0]
		cmd, arg := protocol.ComQuery, test.text
		if test.binary {
			id := w.do(protocol.ComStmtPrepare, test.text)[5:9]
			cmd, arg = protocol.ComStmtExecute, string(id)+"\x00\x01\x00\x00\x00"
		}
		answer := w.do(cmd, arg) // the whole result would have no end
		packets := split(answer)
		last := packets[len(packets)-1]
		given := 0
		for i := range uint64(rows + 1) {
			text := protocol.AppendLenEncBytes(nil, strconv.FormatUint(math.MaxUint64-rows+i, 10))
			if test.binary {
				text = binary.LittleEndian.AppendUint64(nil, math.MaxUint64-rows+i)
			}
			given += bytes.Count(answer, text)
		}
		if e := protocol.ParseServerError(last); last[0] != 0xff || !strings.Contains(e.Error(), "4084") || given < rows-1 {
			t.Errorf("%s: got %d rows with numbers and at the end %v, want %d and 4084", test.name, given, e, rows)
		}
		// The session is the same, and its connection is free for the next statement.
		if got := w.rows("SELECT @@pseudo_thread_id, 1 + 1"); got[0] != connection || got[1] != "2" {
			t.Errorf("%s: afterwards: got %s, want connection %s", test.name, got, connection)
		}
		w.send(packet(command(protocol.ComQuery, test.text)))
		w.receive(protocol.ShapeResult, nil)
		if _, rows := w.result("SHOW WARNINGS"); len(rows) != 1 || rows[0][1] != "4084" {
			t.Errorf("%s: SHOW WARNINGS: got %s, want 4084", test.name, rows)
		}
	}
}

func TestAClientThatVanishesAmongNumberedRowsLeavesNothing(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(opts *proxy.Options) { opts.WriteTimeout = time.Second }})
	for i := range 2 {
		w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
		w.send(packet(command(protocol.ComQuery, "SELECT NEXTVAL('photos'), seq, REPEAT('x', 1000) FROM "+o.Servers[0].Numbers(10_000_000))))
		if err := w.Fill(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			w.Close()
		} // without an error it takes no more
	}
	o.awaitSessions(t, 0)
	o.awaitNoStatement(t, o.Servers[0], "REPEAT")
	if got := o.nextNumber(t, "photos"); got > 1001+200_000 {
		t.Errorf("the next number is %d: too many were taken for rows that no client got", got)
	}
}
