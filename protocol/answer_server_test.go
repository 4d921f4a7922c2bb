package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// recorder sends commands to a real server and records the answers, up to the end that Answer sees.
// A ping follows each command: its answer shows whether the server had sent anything more.
type recorder struct {
	t    *testing.T
	conn *Conn
	caps Capability
}

// record is an answer as it came.
type record struct {
	name   string
	shape  Shape
	bytes  []byte
	walked walked
}

func newRecorder(t *testing.T, s *mysqltest.Server, schema string, caps Capability) *recorder {
	t.Helper()
	nc, err := net.Dial("unix", s.Socket())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := NewConn(nc, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	hello, err := (&ClientLogin{User: "root", Database: schema, Capabilities: caps, Collation: 45}).Run(conn)
	if err != nil {
		t.Fatal(err)
	}
	if hello.Capabilities.Has(DeprecateEOF) != caps.Has(DeprecateEOF) {
		t.Fatalf("agreed on %#x, want the framing of %#x", hello.Capabilities, caps)
	}
	return &recorder{t: t, conn: conn, caps: hello.Capabilities}
}

func (r *recorder) send(b []byte) {
	r.t.Helper()
	if _, err := r.conn.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

// packet reads one whole packet, header included.
func (r *recorder) packet() []byte {
	r.t.Helper()
	for {
		b := r.conn.Buffered()
		if len(b) >= HeaderSize && len(b) >= HeaderSize+PayloadLen(b) {
			p := bytes.Clone(b[:HeaderSize+PayloadLen(b)])
			r.conn.Discard(len(p))
			return p
		}
		if err := r.conn.Fill(); err != nil {
			r.t.Fatal(err)
		}
	}
}

var pingPacket = []byte{1, 0, 0, 0, byte(ComPing)}

// do runs a command. file is the contents to send if the server asks for a file.
func (r *recorder) do(name string, cmd Command, argument, file string) record {
	r.t.Helper()
	payload := append([]byte{byte(cmd)}, argument...)
	command, _ := AppendPacket(nil, payload, 0)
	if file == "" {
		command = append(command, pingPacket...)
	}
	r.send(command)

	rec := record{name: name, shape: AnswerTo(payload)}
	var a Answer
	a.Begin(rec.shape, r.caps)
	for rec.walked.Event != Done {
		n, ev := a.Walk(r.conn.Buffered())
		rec.bytes = append(rec.bytes, r.conn.Buffered()[:n]...)
		r.conn.Discard(n)
		rec.walked.Event = ev
		switch ev {
		case NeedMore:
			if err := r.conn.Fill(); err != nil {
				r.t.Fatalf("%s: %v after %d bytes", name, err, len(rec.bytes))
			}
		case WantsFile:
			rec.walked.Files = append(rec.walked.Files, len(rec.bytes))
			b, num := AppendPacket(nil, []byte(file), a.PacketNum+1)
			b, _ = AppendPacket(b, nil, num)
			r.send(b)
			a.FileSent()
		case Malformed:
			r.t.Fatalf("%s: malformed at %x", name, r.conn.Buffered()[:min(64, len(r.conn.Buffered()))])
		}
	}
	rec.walked = walked{
		Accepted: len(rec.bytes), Event: Done, Files: rec.walked.Files, Status: a.Status, Warnings: a.Warnings,
		ErrCode: a.ErrCode, Rows: a.Rows, PacketNum: a.PacketNum,
	}
	if file != "" {
		r.send(pingPacket)
	}
	// A server that tracks everything for the session says more in this OK too.
	if p := r.packet(); len(p) != HeaderSize+7 && !r.caps.Has(SessionTrack) || p[3] != 1 || p[4] != 0 {
		r.t.Fatalf("%s: after the answer: got %x, want the OK of a ping\nanswer: %x", name, p, rec.bytes[:min(256, len(rec.bytes))])
	}
	if rest := r.conn.Buffered(); len(rest) != 0 {
		r.t.Fatalf("%s: after the ping's answer: got %x, want nothing", name, rest[:min(64, len(rest))])
	}
	return rec
}

// prepare prepares a statement and returns its id.
func (r *recorder) prepare(sql string) string {
	r.t.Helper()
	b, _ := AppendPacket(nil, append([]byte{byte(ComStmtPrepare)}, sql...), 0)
	r.send(b)
	p := r.packet()
	if p[4] != 0 {
		r.t.Fatalf("prepare %s: %q", sql, p)
	}
	columns, params := int(binary.LittleEndian.Uint16(p[9:])), int(binary.LittleEndian.Uint16(p[11:]))
	n := columns + params
	if !r.caps.Has(DeprecateEOF) {
		n += min(1, columns) + min(1, params)
	}
	for range n {
		r.packet()
	}
	return string(p[5:9])
}

const (
	noCursor   = "\x00\x01\x00\x00\x00"
	readCursor = "\x01\x01\x00\x00\x00"
)

var recordedQueries = []struct {
	sql  string
	rows bool
	code uint16
	file string
	// mariaDB marks statements that other servers have no syntax for.
	mariaDB bool
}{
	{sql: "SELECT 1", rows: true},
	{sql: "SELECT 1, NULL, '', 'abc', 2.5, NOW()", rows: true},
	{sql: "SELECT NULL", rows: true},
	{sql: "SELECT * FROM t WHERE id < 0", rows: true},
	{sql: "SELECT * FROM t", rows: true},
	{sql: "SELECT * FROM wide", rows: true},
	{sql: "SELECT REPEAT('x', 250)", rows: true},
	{sql: "SELECT REPEAT('x', 251)", rows: true},
	{sql: "SELECT REPEAT('x', 70000), NULL, REPEAT('y', 70000)", rows: true},
	{sql: "SELECT a.id, b.id, REPEAT('z', 100) FROM t a, t b, t c", rows: true},
	{sql: "SELECT DISTINCT s FROM t ORDER BY s LIMIT 2", rows: true},
	{sql: "SELECT id, IF(id < 3, 1, (SELECT id FROM t)) FROM t", rows: true, code: 1242},
	{sql: "SELECT id, POW(id, 800) FROM t", rows: true, code: 1690},
	{sql: "SELECT missing FROM t", code: 1054},
	{sql: "SELEC", code: 1064},
	{sql: "SELECT * FROM missing", code: 1146},
	{sql: "INSERT INTO t (s) VALUES ('four'), ('five')"},
	{sql: "INSERT INTO t (id, s) VALUES (1, 'again')", code: 1062},
	{sql: "INSERT IGNORE INTO t (id, s) VALUES (1, 'again'), (2, 'again')"},
	{sql: "INSERT INTO big (id) VALUES (18446744073709551614)"},
	{sql: "INSERT INTO t (s) VALUES ('six') RETURNING id, s", rows: true, mariaDB: true},
	{sql: "UPDATE t SET s = CONCAT(s, '!')"},
	{sql: "UPDATE t SET s = 'none' WHERE id = -1"},
	{sql: "DELETE FROM t WHERE id > 3"},
	{sql: "SELECT 1/0, CAST('a' AS SIGNED)", rows: true},
	{sql: "SHOW WARNINGS", rows: true},
	{sql: "SHOW COUNT(*) ERRORS", rows: true},
	{sql: "SHOW CREATE TABLE t", rows: true},
	{sql: "SHOW VARIABLES", rows: true},
	{sql: "EXPLAIN SELECT * FROM t", rows: true},
	{sql: "DESCRIBE wide", rows: true},
	{sql: "CHECK TABLE t", rows: true},
	{sql: "ANALYZE TABLE t", rows: true},
	{sql: "BEGIN"},
	{sql: "SAVEPOINT a"},
	{sql: "ROLLBACK"},
	{sql: "SET @a := 1, NAMES utf8mb4"},
	{sql: "SET SESSION session_track_schema = 1, session_track_system_variables = '*', session_track_state_change = 1, session_track_transaction_info = 'CHARACTERISTICS'"},
	{sql: "SET autocommit = 0"},
	{sql: "SELECT COUNT(*) FROM t", rows: true},
	{sql: "COMMIT"},
	{sql: "SET autocommit = 1"},
	{sql: "USE information_schema"},
	{sql: "SELECT * FROM character_sets", rows: true},
	{sql: "USE %s"},
	{sql: "DO SLEEP(0)"},
	{sql: "SELECT 1; SELECT 2, 3; DO 1; SELECT * FROM t WHERE id < 0", rows: true},
	{sql: "DO 1; DO 2; DO 3"},
	{sql: "SELECT 1; SELECT * FROM missing; SELECT 2", rows: true, code: 1146},
	{sql: "DO 1; SELEC", code: 1064},
	{sql: "CALL two(5)", rows: true},
	{sql: "CALL two(5); CALL none(); SELECT 9", rows: true},
	{sql: "CALL none()"},
	{sql: "CALL fails()", rows: true, code: 1644},
	{sql: "CALL missing()", code: 1305},
	{sql: "PREPARE p FROM 'SELECT ? + 1'"},
	{sql: "EXECUTE p USING @a", rows: true},
	{sql: "SELECT id INTO @b FROM t LIMIT 1"},
	{sql: "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE loaded", file: "1\ta\n2\tb\n"},
	{sql: "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE loaded", file: "1\ta\nx\tb\n\n"},
	{sql: "LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE missing (a)", code: 1146},
	{sql: "DO 1; LOAD DATA LOCAL INFILE 'x.csv' INTO TABLE loaded; SELECT * FROM loaded", file: "7\tg\n", rows: true},
	{sql: "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END", rows: true, mariaDB: true},
	{sql: "HANDLER t OPEN"},
	{sql: "HANDLER t READ FIRST", rows: true},
	{sql: "HANDLER t CLOSE"},
	{sql: "XA START 'x'"},
	{sql: "XA END 'x'"},
	{sql: "XA ROLLBACK 'x'"},
	{sql: "KILL QUERY CONNECTION_ID()", code: 1317},
}

// The walk ends where real servers stop, in every framing. It gives the same for the same bytes cut
// anywhere.
//
// Checklist 15.
// Checklist 16.
// Checklist 17.
// Checklist 18.
// Checklist 19.
// Checklist 20.
// Checklist 22.
func TestAWalkEndsWhereARealServerStops(t *testing.T) {
	s := mysqltest.Shared(t)
	const base = LongFlag | Transactions | MultiStatements | MultiResults | PSMultiResults | LocalFiles
	for _, caps := range []Capability{base, base | DeprecateEOF, base | SessionTrack, base | SessionTrack | DeprecateEOF} {
		t.Run(fmt.Sprintf("EOF %v, session track %v", !caps.Has(DeprecateEOF), caps.Has(SessionTrack)), func(t *testing.T) {
			schema := s.Schema(t)
			var wide []string
			for i := range 300 {
				wide = append(wide, fmt.Sprintf("c%d TINYINT", i))
			}
			s.Exec(t, "USE "+schema,
				"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(100))",
				"INSERT INTO t (s) VALUES ('one'), (NULL), ('three')",
				"CREATE TABLE big (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY)",
				"CREATE TABLE wide ("+strings.Join(wide, ", ")+")", "INSERT INTO wide () VALUES (), ()",
				"CREATE TABLE loaded (id INT, s TEXT)",
				"CREATE PROCEDURE none() DO 1",
				"CREATE PROCEDURE two(n INT) BEGIN SELECT n; SELECT id, s FROM t; END",
				"CREATE PROCEDURE fails() BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'so it is'; END")
			r := newRecorder(t, s, schema, caps)
			var records []record
			for _, q := range recordedQueries {
				if q.mariaDB && !s.IsMariaDB() {
					continue
				}
				if strings.Contains(q.sql, "%s") {
					q.sql = fmt.Sprintf(q.sql, schema)
				}
				rec := r.do(q.sql, ComQuery, q.sql, q.file)
				if rec.walked.Rows != q.rows || rec.walked.ErrCode != q.code || (q.file != "") != (len(rec.walked.Files) == 1) {
					t.Errorf("%s: got %+v, want rows %v, code %d, file %v", q.sql, rec.walked, q.rows, q.code, q.file != "")
				}
				records = append(records, rec)
			}
			records = append(records, r.others(s, schema)...)
			for _, rec := range records {
				whole := slices.Concat(rec.bytes, answerBytes(okBytes(0, 2, 0, "")))
				if got := referenceWalk(rec.shape, caps, whole); !got.equal(rec.walked) {
					t.Errorf("%s: reference: got %+v, want %+v", rec.name, got, rec.walked)
				}
				if len(whole) < 2000 || len(whole) > 20_000 {
					checkSplits(t, rec.shape, caps, whole, rec.walked)
				} else if got := walkIn(t, rec.shape, caps, whole, everyByte(len(whole))...); !got.equal(rec.walked) {
					t.Errorf("%s: byte by byte: got %+v, want %+v", rec.name, got, rec.walked)
				}
			}
		})
	}
}

// others records the commands that are no COM_QUERY.
func (r *recorder) others(s *mysqltest.Server, schema string) []record {
	t := r.t
	const lastRowSent = Status(0x80)
	var list []record
	do := func(name string, cmd Command, argument string, want walked) {
		t.Helper()
		rec := r.do(name, cmd, argument, "")
		got := rec.walked
		want.Accepted, want.Event, want.PacketNum, want.Warnings = got.Accepted, got.Event, got.PacketNum, got.Warnings
		want.Status |= got.Status &^ (CursorExists | lastRowSent | MoreResults)
		if !got.equal(want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		list = append(list, rec)
	}
	ok, rows := walked{}, walked{Rows: true}
	failed := func(code uint16) walked { return walked{ErrCode: code} }
	do("COM_PING", ComPing, "", ok)
	do("COM_INIT_DB", ComInitDB, schema, ok)
	do("COM_INIT_DB of nothing", ComInitDB, "no_such_schema", failed(1049))
	do("COM_STATISTICS", ComStatistics, "", ok)
	do("COM_FIELD_LIST", ComFieldList, "t\x00%", ok)
	do("COM_FIELD_LIST of 300", ComFieldList, "wide\x00", ok)
	do("COM_FIELD_LIST of nothing", ComFieldList, "missing\x00", failed(1146))
	do("COM_SET_OPTION off", ComSetOption, "\x01\x00", ok)
	do("COM_SET_OPTION on", ComSetOption, "\x00\x00", ok)
	do("COM_SET_OPTION unknown", ComSetOption, "\x09\x00", failed(1047))
	if s.IsMariaDB() {
		do("COM_PROCESS_INFO", ComProcessInfo, "", rows)
		do("COM_PROCESS_KILL", ComProcessKill, "\xff\xff\xff\x7f", failed(1094))
	} else { // MySQL 9 has neither
		do("COM_PROCESS_INFO", ComProcessInfo, "", failed(1047))
		do("COM_PROCESS_KILL", ComProcessKill, "\xff\xff\xff\x7f", failed(1047))
	}
	do("COM_DEBUG", ComDebug, "", ok)

	all := r.prepare("SELECT id, s FROM t")
	do("execute", ComStmtExecute, all+noCursor, rows)
	do("execute with a cursor", ComStmtExecute, all+readCursor, walked{Rows: true, Status: CursorExists})
	do("fetch two", ComStmtFetch, all+"\x02\x00\x00\x00", walked{Status: CursorExists})
	do("fetch more than there are", ComStmtFetch, all+"\x20\x00\x00\x00", walked{Status: lastRowSent})
	do("fetch behind the end", ComStmtFetch, all+"\x01\x00\x00\x00", failed(1421))
	do("reset", ComStmtReset, all, ok)
	do("COM_STMT_CLOSE", ComStmtClose, all, ok)
	do("reset of nothing", ComStmtReset, all, failed(1243))
	do("COM_STMT_SEND_LONG_DATA of nothing", ComStmtLongData, all+"\x00\x00data", ok)

	insert := r.prepare("INSERT INTO big () VALUES ()")
	do("execute an INSERT", ComStmtExecute, insert+noCursor, failed(1467))
	call := r.prepare("CALL two(7)")
	do("execute a CALL", ComStmtExecute, call+noCursor, rows)
	do("execute a CALL with a cursor", ComStmtExecute, call+readCursor, rows)
	fails := r.prepare("SELECT id, POW(id, 800) FROM t")
	do("execute that fails", ComStmtExecute, fails+noCursor, walked{Rows: true, ErrCode: 1690})
	param := r.prepare("SELECT ?, ?")
	do("execute with parameters", ComStmtExecute, param+noCursor+"\x02\x01\xfd\x00\x06\x00\x03abc", rows)
	do("execute of nothing", ComStmtExecute, "\xff\xff\x00\x00"+noCursor, failed(1243))

	do("COM_RESET_CONNECTION", ComResetConn, "", ok)
	return list
}

// Rows of 16 MB: at the sizes where a packet is exactly full, and where the first
// column's length takes FE.
//
// Checklist 12.
func TestAWalkGoesOverAServersRowsOf16MB(t *testing.T) {
	if testing.Short() {
		t.Skip("CI runs it: rows of 16 MB")
	}
	s := mysqltest.Start(t, "--max-allowed-packet=64M")
	for _, caps := range []Capability{MultiStatements, MultiStatements | DeprecateEOF} {
		r := newRecorder(t, s, "", caps)
		for _, size := range []int{1<<24 - 6, 1<<24 - 5, 1<<24 - 4, 1<<24 - 1, 1 << 24, 2*(1<<24-1) - 9} {
			rec := r.do(fmt.Sprint(size), ComQuery, fmt.Sprintf("SELECT REPEAT('x', %d); SELECT 2", size), "")
			if !rec.walked.Rows || rec.walked.ErrCode != 0 || len(rec.bytes) < size {
				t.Errorf("row of %d bytes: got %+v", size, rec.walked)
			}
		}
	}
}
