package protocol

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"

	"seqproxy/internal/mysqld"
	"seqproxy/test/mysqltest"
)

// resultServer answers statements with this package's encoder, for real clients to
// decode.
type resultServer struct {
	t        *testing.T
	listener net.Listener
	caps     Capability
	wait     sync.WaitGroup
}

func startResultServer(t *testing.T, caps Capability) *resultServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &resultServer{t: t, listener: l, caps: caps}
	s.wait.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.wait.Go(func() { s.serve(nc) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.wait.Wait()
	})
	return s
}

func (s *resultServer) serve(nc net.Conn) {
	conn, err := NewConn(nc, 0, 0)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		s.t.Error(err)
		return
	}
	login := ServerLogin{Version: "8.4.3", Capabilities: s.caps, Collation: 45, Status: Autocommit, RSA: testRSA, ConnectionID: 1 << 31}
	hello, err := judged(lookupTestUser)(login.Receive(conn))
	if err != nil {
		s.t.Error(err)
		return
	}
	caps := hello.Capabilities
	if _, err := conn.Write(AppendOK(nil, conn.PacketNum(), OK{Status: Autocommit})); err != nil {
		s.t.Error(err)
		return
	}
	prepared := ""
	for {
		command, err := conn.ReadPacket(1 << 20)
		if err != nil || len(command) == 0 {
			return
		}
		var out []byte
		switch Command(command[0]) {
		case ComQuit:
			return
		case ComStmtClose:
			continue
		case ComQuery:
			text := command[1:]
			if caps.Has(QueryAttributes) {
				n, ok := CutAttributes(text)
				if !ok {
					s.t.Errorf("%q: malformed attributes", command)
					return
				}
				text = text[n:]
			}
			out = s.answer(string(text), caps, false)
		case ComStmtPrepare:
			prepared = string(command[1:])
			columns := resultTables[prepared].Columns
			form := Form{Capabilities: caps, Status: Autocommit, Binary: true}
			out = AppendPrepareOK(nil, 1, form, 7, len(columns), 0)
			r := NewResult(out, 2, form)
			r.Definitions(columns)
			out = r.Bytes()
		case ComStmtExecute:
			out = s.answer(prepared, caps, true)
		default:
			out = AppendOK(nil, 1, OK{Status: Autocommit})
		}
		// The walk must find the encoder's end.
		if shape := Command(command[0]).AnswerShape(); shape != ShapePrepare {
			var a Answer
			a.Begin(shape, caps)
			if n, ev := a.Walk(out); n != len(out) || ev != Done {
				s.t.Errorf("%q: the walk accepts %d of %d bytes, event %d", command, n, len(out), ev)
			}
		}
		if _, err := conn.Write(out); err != nil {
			s.t.Error(err)
			return
		}
	}
}

func (s *resultServer) answer(sql string, caps Capability, binary bool) []byte {
	if sql == "fail" {
		return AppendERR(nil, 1, mysql.ER_TABLEACCESS_DENIED_ERROR, "42000", "it is denied")
	}
	table, ok := resultTables[sql]
	if !ok {
		return AppendOK(nil, 1, OK{Status: Autocommit}) // clients send these without being asked
	}
	return table.Append(nil, 1, Form{Capabilities: caps, Status: Autocommit, Binary: binary, Warnings: table.OK.Warnings})
}

func column(name string, typ uint8, flags uint16) Column {
	return Column{Schema: "album0", Table: "t", OrgTable: "photos", Name: name, OrgName: "original", Charset: 45, Length: 80, Type: typ, Flags: flags}
}

var bigString = strings.Repeat("ä", 40_000)

var resultTables = map[string]*Table{
	"values": {
		Columns: []Column{
			column("u", mysql.MYSQL_TYPE_LONGLONG, mysql.UNSIGNED_FLAG), column("i", mysql.MYSQL_TYPE_LONGLONG, 0),
			column("n", mysql.MYSQL_TYPE_LONG, mysql.UNSIGNED_FLAG), column("s", mysql.MYSQL_TYPE_VAR_STRING, 0), column("b", mysql.MYSQL_TYPE_VAR_STRING, 0),
		},
		Rows: [][]any{
			{uint64(1<<64 - 1), int64(-1 << 63), uint32(1<<32 - 1), "text", []byte("bytes")},
			{uint64(0), int64(0), uint32(0), "", []byte{}},
			{nil, nil, nil, nil, nil},
			{uint64(7), nil, uint32(9), nil, []byte(strings.Repeat("b", 250))},
			{nil, int64(-8), nil, strings.Repeat("s", 251), nil},
			{uint64(1), int64(1), uint32(1), bigString, []byte("")},
		},
	},
	"measures": {
		Columns: []Column{column("d", mysql.MYSQL_TYPE_DOUBLE, 0), column("e", mysql.MYSQL_TYPE_DOUBLE, 0)},
		Rows:    [][]any{{0.25, -1.5}, {nil, float64(0)}, {123456.0, nil}},
	},
	"times": {
		Columns: []Column{column("t", mysql.MYSQL_TYPE_DATETIME, 0)},
		Rows:    [][]any{{time.Date(2024, 2, 29, 23, 5, 9, 999, time.UTC)}, {nil}, {time.Date(999, 1, 1, 0, 0, 0, 0, time.UTC)}},
	},
	"nine": nineColumns(), // the NULL bits take two bytes
	"none": {Columns: []Column{column("empty", mysql.MYSQL_TYPE_VAR_STRING, 0)}},
	"many": manyRows(),
	"done": {OK: OK{AffectedRows: 70_000, InsertID: 1<<63 + 5, Warnings: 3, Info: "Rows matched: 9  Changed: 8  Warnings: 3"}},
}

func nineColumns() *Table {
	t := &Table{Rows: [][]any{nil, nil}}
	for i := range 9 {
		t.Columns = append(t.Columns, column(fmt.Sprintf("c%d", i), mysql.MYSQL_TYPE_VAR_STRING, 0))
		var v, w any = "x", nil
		if i%2 == 0 {
			v, w = w, v
		}
		t.Rows[0], t.Rows[1] = append(t.Rows[0], v), append(t.Rows[1], w)
	}
	return t
}

func manyRows() *Table {
	t := &Table{Columns: []Column{column("id", mysql.MYSQL_TYPE_LONGLONG, mysql.UNSIGNED_FLAG)}}
	for i := range 600 { // packet numbers wrap
		t.Rows = append(t.Rows, []any{uint64(i)})
	}
	return t
}

// textOf is how a value is read into a sql.NullString.
func textOf(v any) sql.NullString {
	switch v := v.(type) {
	case nil:
		return sql.NullString{}
	case []byte:
		return sql.NullString{String: string(v), Valid: true}
	case time.Time:
		return sql.NullString{String: v.Format(time.DateTime), Valid: true}
	}
	return sql.NullString{String: fmt.Sprint(v), Valid: true}
}

// everyFraming runs a test with the framings that a client may agree on.
func everyFraming(t *testing.T, test func(t *testing.T, s *resultServer)) {
	t.Helper()
	for _, without := range []Capability{0, DeprecateEOF, SessionTrack, DeprecateEOF | SessionTrack} {
		t.Run(fmt.Sprintf("EOF %v, session track %v", without.Has(DeprecateEOF), !without.Has(SessionTrack)), func(t *testing.T) {
			test(t, startResultServer(t, Relayable&^without))
		})
	}
}

func TestTheGoDriverReadsOurAnswers(t *testing.T) {
	everyFraming(t, func(t *testing.T, s *resultServer) {
		cfg := driver.NewConfig()
		cfg.User, cfg.Net, cfg.Addr = "open", "tcp", s.listener.Addr().String()
		db, err := sql.Open("mysql", cfg.FormatDSN())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1) // a later query on the same connection would read the rest of an answer

		for name, table := range resultTables {
			if len(table.Columns) == 0 {
				continue
			}
			stmt, err := db.Prepare(name)
			if err != nil {
				t.Fatalf("prepare %s: %v", name, err)
			}
			for kind, query := range map[string]func() (*sql.Rows, error){
				"text": func() (*sql.Rows, error) { return db.Query(name) }, "binary": func() (*sql.Rows, error) { return stmt.Query() },
			} {
				checkRows(t, name+" as "+kind, table, query)
			}
			if err := stmt.Close(); err != nil {
				t.Error(err)
			}
		}

		result, err := db.Exec("done")
		if err != nil {
			t.Fatal(err)
		}
		affected, _ := result.RowsAffected() // the driver never returns an error here
		id, _ := result.LastInsertId()
		if want := resultTables["done"].OK; affected != int64(want.AffectedRows) || uint64(id) != want.InsertID {
			t.Errorf("OK: got %d rows and id %d, want %d and %d", affected, uint64(id), want.AffectedRows, want.InsertID)
		}
		_, err = db.Exec("fail")
		var me *driver.MySQLError
		if !errors.As(err, &me) || me.Number != 1142 || string(me.SQLState[:]) != "42000" || me.Message != "it is denied" {
			t.Errorf("ERR: got %v, want 1142 (42000): it is denied", err)
		}
	})
}

func checkRows(t *testing.T, what string, table *Table, query func() (*sql.Rows, error)) {
	t.Helper()
	rows, err := query()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for i, want := range table.Columns {
		typeName := map[uint8]string{mysql.MYSQL_TYPE_LONGLONG: "BIGINT", mysql.MYSQL_TYPE_LONG: "INT", mysql.MYSQL_TYPE_VAR_STRING: "VARCHAR", mysql.MYSQL_TYPE_DOUBLE: "DOUBLE", mysql.MYSQL_TYPE_DATETIME: "DATETIME"}[want.Type]
		if want.Flags&mysql.UNSIGNED_FLAG != 0 {
			typeName = "UNSIGNED " + typeName
		}
		if got := types[i]; got.Name() != want.Name || got.DatabaseTypeName() != typeName {
			t.Errorf("%s: column %d: got %s %s, want %s %s", what, i, got.Name(), got.DatabaseTypeName(), want.Name, typeName)
		}
	}
	n := 0
	for ; rows.Next(); n++ {
		got := make([]sql.NullString, len(types))
		at := make([]any, len(got))
		for i := range got {
			at[i] = &got[i]
		}
		if err := rows.Scan(at...); err != nil {
			t.Fatalf("%s: row %d: %v", what, n, err)
		}
		for i := range got {
			if want := textOf(table.Rows[n][i]); got[i] != want {
				t.Errorf("%s: row %d, column %d: got %.40v, want %.40v", what, n, i, got[i], want)
			}
		}
	}
	if err := rows.Err(); err != nil || n != len(table.Rows) {
		t.Errorf("%s: got %d rows, %v, want %d", what, n, err, len(table.Rows))
	}
}

func TestTheMariaDBClientReadsOurAnswers(t *testing.T) {
	client, err := mysqld.FindClient()
	if err != nil {
		t.Fatal(err)
	}
	everyFraming(t, func(t *testing.T, s *resultServer) {
		_, port, _ := net.SplitHostPort(s.listener.Addr().String())
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		run := func(args ...string) string {
			args = append([]string{"--no-defaults", "--skip-ssl", "--protocol=tcp", "-h127.0.0.1", "-P" + port, "-uopen", "--default-character-set=utf8mb4"}, args...)
			out, err := exec.CommandContext(ctx, client, args...).CombinedOutput()
			if err != nil && !strings.Contains(string(out), "it is denied") {
				t.Fatalf("%v: %s", err, out)
			}
			return string(out)
		}
		var want strings.Builder
		for _, name := range []string{"values", "nine", "none", "many"} {
			table := resultTables[name]
			for i, row := range table.Rows {
				if i == 0 {
					for i, c := range table.Columns {
						want.WriteString(map[bool]string{true: "\t"}[i > 0] + c.Name)
					}
					want.WriteString("\n")
				}
				for i, v := range row {
					text := "NULL"
					if s := textOf(v); s.Valid {
						text = s.String
					}
					want.WriteString(map[bool]string{true: "\t"}[i > 0] + text)
				}
				want.WriteString("\n")
			}
		}
		if got := run("--batch", "-e", "values; nine; none; many"); got != want.String() {
			t.Errorf("got\n%.2000s\nwant\n%.2000s", got, want.String())
		}
		got := run("-vvv", "-e", "done")
		for _, part := range []string{"70000 rows affected, 3 warnings", "\nRows matched: 9  Changed: 8  Warnings: 3\n"} {
			if !strings.Contains(got, part) {
				t.Errorf("OK: got %q, want %q in it", got, part)
			}
		}
		if got, want := run("-e", "fail"), "ERROR 1142 (42000) at line 1: it is denied"; !strings.Contains(got, want) {
			t.Errorf("ERR: got %q, want %q", got, want)
		}
		typed := run("--table", "--column-type-info", "-e", "many")
		for _, part := range []string{"`id`", "`original`", "`album0`", "`photos`", "LONGLONG", "UNSIGNED", "utf8mb4"} {
			if !strings.Contains(typed, part) {
				t.Errorf("column types: %q is missing in %.600s", part, typed)
			}
		}
	})
}

// The proxy's OK has the same bytes as a server's.
func TestOurOKIsTheServersOK(t *testing.T) {
	s := mysqltest.Shared(t)
	schema := s.Schema(t)
	s.Exec(t, "CREATE TABLE "+schema+".t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)")
	for _, caps := range []Capability{LongFlag, LongFlag | DeprecateEOF, LongFlag | SessionTrack} {
		r := newRecorder(t, s, schema, caps)
		for _, c := range []struct {
			sql string
			ok  OK
		}{
			{"DELETE FROM t", OK{}},
			{"ALTER TABLE t AUTO_INCREMENT = 300", OK{Info: "Records: 0  Duplicates: 0  Warnings: 0"}},
			{"INSERT INTO t (n) VALUES (1), (2)", OK{AffectedRows: 2, InsertID: 300, Info: "Records: 2  Duplicates: 0  Warnings: 0"}},
			{"INSERT INTO t (n) VALUES (3)", OK{AffectedRows: 1, InsertID: 302}},
			{"UPDATE t SET n = n + 1", OK{AffectedRows: 3, Info: "Rows matched: 3  Changed: 3  Warnings: 0", Status: 0x20}},
			{"DELETE FROM t", OK{AffectedRows: 3}},
		} {
			c.ok.Status |= Autocommit
			want := r.do(c.sql, ComQuery, c.sql, "")
			c.ok.Status |= want.walked.Status & 0x30 // bits about the use of indexes
			if got := AppendOK(nil, 1, c.ok); !bytes.Equal(got, want.bytes) {
				t.Errorf("%s:\n got %q\nwant %q", c.sql, got, want.bytes)
			}
		}
	}
}

func TestOurERRIsTheServersERR(t *testing.T) {
	r := newRecorder(t, mysqltest.Shared(t), "", LongFlag)
	want := r.do("missing table", ComQuery, "SELECT * FROM mysql.missing", "").bytes
	if got := AppendERR(nil, 1, 1146, "42S02", "Table 'mysql.missing' doesn't exist"); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := AppendERR([]byte("x"), 0, 1040, "", "Too many"), "x\x0b\x00\x00\x00\xff\x10\x04Too many"; string(got) != want {
		t.Errorf("without a state: got %q, want %q", got, want)
	}
}

// A result set of a literal has the same bytes as the server's, as text and prepared.
func TestOurResultSetIsTheServersResultSet(t *testing.T) {
	s := mysqltest.Shared(t)
	for _, caps := range []Capability{LongFlag, LongFlag | DeprecateEOF} {
		r := newRecorder(t, s, "", caps)
		const query = "SELECT LAST_INSERT_ID(1001) AS id"
		r.do(query, ComQuery, query, "")
		table := &Table{
			Columns: []Column{{Name: "id", Charset: 63, Length: 21, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: mysql.NOT_NULL_FLAG | mysql.UNSIGNED_FLAG | mysql.BINARY_FLAG}},
			Rows:    [][]any{{uint64(1001)}},
		}
		for _, isBinary := range []bool{false, true} {
			cmd, argument := ComQuery, query
			if isBinary {
				cmd, argument = ComStmtExecute, r.prepare(query)+noCursor
			}
			want := r.do(query, cmd, argument, "").bytes
			got := table.Append([]byte("before"), 1, Form{Capabilities: r.caps, Status: Autocommit, Binary: isBinary})
			// Length, flags and nullability are the caller's choice; the test takes the server's.
			fixed := bytes.LastIndexByte(want[:bytes.Index(want, []byte("\x02id\x00\x0c"))+5], 0x0c) + 1
			if fixed+10 > len(want) || len(got) != len("before")+len(want) {
				t.Fatalf("got %q, want %q", got, want)
			}
			got = slices.Clone(got[len("before"):])
			copy(got[fixed:fixed+10], want[fixed:fixed+10])
			if typ := want[fixed+6]; typ != mysql.MYSQL_TYPE_LONGLONG {
				t.Fatalf("the server's type is %d", typ)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("binary %v:\n got %q\nwant %q", isBinary, got, want)
			}
		}
	}
}

func TestARowOfAnotherTypePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	r := NewResult(nil, 1, Form{Capabilities: modern})
	r.Row(float32(3.5))
}

func TestNoDefinitionsHaveNoEOF(t *testing.T) {
	for _, caps := range []Capability{classic, modern} {
		r := NewResult(nil, 2, Form{Capabilities: caps, Status: Autocommit, Binary: true})
		r.Definitions(nil)
		if got := r.Bytes(); len(got) != 0 {
			t.Errorf("got %x, want nothing", got)
		}
	}
}

func TestPrepareOKTellsIDAndCounts(t *testing.T) {
	b := AppendPrepareOK([]byte("x"), 1, Form{}, 0x80000001, 300, 2)[1:]
	if PayloadLen(b) != 12 || len(b) != 16 || b[3] != 1 || b[4] != 0 || binary.LittleEndian.Uint32(b[5:]) != 0x80000001 ||
		binary.LittleEndian.Uint16(b[9:]) != 300 || binary.LittleEndian.Uint16(b[11:]) != 2 {
		t.Errorf("got %x", b)
	}
}

func TestAWarningIsAddedToAnOKAndToNothingElse(t *testing.T) {
	for _, ok := range []OK{
		{},
		{AffectedRows: 70_000, InsertID: 1<<63 + 5, Warnings: 3, Info: "Rows matched: 9", Status: Autocommit},
		{AffectedRows: 1, InsertID: 1001, Warnings: 65_534},
	} {
		got := AppendOK(nil, 1, ok)
		AddWarning(got[HeaderSize:])
		ok.Warnings++
		if want := AppendOK(nil, 1, ok); !bytes.Equal(got, want) {
			t.Errorf("got %x, want %x", got, want)
		}
	}
	for _, other := range [][]byte{
		{},
		{headerOK},
		{headerOK, 0, 0, 2, 0},
		{headerERR, 0, 0, 2, 0, 0, 0},
		{headerEOF, 0, 0, 2, 0, 0, 0},
		{1, 0, 0, 2, 0, 0, 0},
		{headerOK, 0xfe, 0, 2, 0, 0, 0},
		{headerOK, 0, 0, 2, 0, 0xff, 0xff},
	} {
		got := bytes.Clone(other)
		if AddWarning(got); !bytes.Equal(got, other) {
			t.Errorf("%x became %x", other, got)
		}
	}
}

func TestAnErrorsTextEndsWithAWholeCharacter(t *testing.T) {
	a := strings.Repeat("a", 520)
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"a", 1},
		{a[:510], 510},
		{a[:511], 511},
		{a[:512], 511},
		{a, 511},
		{a[:510] + "é", 510},
		{a[:509] + "é", 511},
		{a[:508] + "é" + a, 511},
		{a[:510] + "€", 510},
		{a[:509] + "€", 509},
		{a[:508] + "€", 511},
		{a[:510] + "😀", 510},
		{a[:508] + "😀", 508},
		{a[:507] + "😀" + a, 511},
		{strings.Repeat("\x80", 600), 507}, // no characters, so the cut is inside of one
		{strings.Repeat("\xff", 600), 511},
	} {
		got := CutErrorText(c.text)
		if len(got) != c.want || !strings.HasPrefix(c.text, got) {
			t.Errorf("%.20q, %d bytes: got %d bytes, want the first %d", c.text, len(c.text), len(got), c.want)
		}
		if b := AppendERR(nil, 1, 1064, "42000", c.text); len(b) != HeaderSize+9+c.want || PayloadLen(b) != 9+c.want || !strings.HasSuffix(string(b), got) {
			t.Errorf("%.20q, %d bytes: got a packet of %d bytes, want %d", c.text, len(c.text), len(b), HeaderSize+9+c.want)
		}
	}
}
