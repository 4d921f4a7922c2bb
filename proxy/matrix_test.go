package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/matrix"
	"seqproxy/test/mysqltest"
)

// side is one of the two connections on which a row of the matrix is tried.
type side struct {
	*wire
	e     *env
	addr  string
	login wireLogin
	heard [][]byte // payloads to compare
	code  uint16   // of the last error among them
}

// hear keeps an answer's packets for the comparison, without the ids of statements and connections,
// which differ.
func (s *side) hear(answer []byte) []byte {
	for _, p := range split(answer) {
		s.code = 0
		if len(p) > 2 && p[0] == 0xff && !protocol.IsProgress(p) {
			s.code = binary.LittleEndian.Uint16(p[1:])
			p = ids.ReplaceAll(p, []byte("n"))
		}
		s.heard = append(s.heard, p)
	}
	return answer
}

func (s *side) try(cmd protocol.Command, argument string) { s.hear(s.do(cmd, argument)) }

func (s *side) prepare(sql string) (id string) {
	s.t.Helper()
	answer := s.do(protocol.ComStmtPrepare, sql)
	id = string(answer[5:9])
	if answer[4] == 0 {
		answer = bytes.Clone(answer)
		clear(answer[5:9])
	}
	s.hear(answer)
	return id
}

// until reads packets up to an EOF or an error, which ends a stream.
func (s *side) until(what string) {
	for {
		b, err := s.raw()
		if err != nil {
			s.t.Fatalf("%s: %v", what, err)
		}
		s.hear(b)
		if b[4] == 0xfe && len(b) < 13 || b[4] == 0xff {
			return
		}
	}
}

// kill makes s end another session, or its statement, which waits for a lock.
func (s *side) kill(send func(id string)) {
	e := s.e
	statement := fmt.Sprintf("SELECT GET_LOCK('held', 100) /* %s */", s.id())
	target := e.waiter(s.t.(*testing.T), s.addr, statement, e.Schemas[0])
	send(target.id())
	if s.code != 0 { // refused
		target.Close()
		return
	}
	answer, err := target.tryReceive(protocol.ShapeResult, nil)
	if err != nil {
		s.heard = append(s.heard, []byte("the connection is closed"))
		return
	}
	s.hear(answer)
	target.ping("a statement that was killed")
}

// matrixRow is a command or a form of it.
type matrixRow struct {
	name string
	try  func(*side)
	// differs says why the proxy's answer differs, in the words of the page.
	differs string
	login   wireLogin
	needs   protocol.Capability // a capability that the server may lack
}

// powerless is the name and the password of an account without rights.
const powerless = "powerless"

const (
	execute    = "\x00\x01\x00\x00\x00"
	withCursor = "\x01\x01\x00\x00\x00"
)

// plainRows are the rows for commands of one packet and its answer.
func plainRows(schema string) (rows []matrixRow) {
	for _, c := range []struct {
		name string
		cmd  protocol.Command
		arg  string
	}{
		{"COM_SLEEP", mysqlComSleep, ""},
		{"COM_INIT_DB", protocol.ComInitDB, schema},
		{"COM_INIT_DB, unknown schema", protocol.ComInitDB, "no_such_schema"},
		{"COM_QUERY, SELECT", protocol.ComQuery, "SELECT * FROM t"},
		{"COM_QUERY, INSERT", protocol.ComQuery, "INSERT INTO u (a) VALUES ('x'), ('y')"},
		{"COM_QUERY, unknown table", protocol.ComQuery, "SELECT * FROM no_such_table"},
		{"COM_QUERY, several statements", protocol.ComQuery, "SELECT 1; DO 1; SELECT * FROM t; SET @x = 1"},
		{"COM_QUERY, several statements, an error among them", protocol.ComQuery, "SELECT 1; SELECT nothing; SELECT 2"},
		{"COM_QUERY, CALL with several results", protocol.ComQuery, "CALL two(1, @o)"},
		{"COM_QUERY, error behind rows", protocol.ComQuery, "CALL failing()"},
		{"COM_QUERY, row above 16 MB", protocol.ComQuery, "SELECT REPEAT('x', 17000000)"},
		{"COM_QUERY, statement above 16 MB", protocol.ComQuery, "SELECT LENGTH('" + strings.Repeat("x", 17_000_000) + "')"},
		{"COM_FIELD_LIST", protocol.ComFieldList, "t\x00"},
		{"COM_CREATE_DB", protocol.ComCreateDB, schema},
		{"COM_DROP_DB", protocol.ComDropDB, "no_such_schema"},
		{"COM_REFRESH", protocol.ComRefresh, "\x01"},
		{"COM_CONNECT", mysqlComConnect, ""},
		{"COM_PROCESS_KILL, unknown id", protocol.ComProcessKill, "\x00\x00\x00\x00"},
		{"COM_DEBUG", protocol.ComDebug, ""},
		{"COM_PING", protocol.ComPing, ""},
		{"COM_TIME", mysqlComTime, ""},
		{"COM_DELAYED_INSERT", mysqlComDelayedInsert, ""},
		{"COM_TABLE_DUMP", protocol.ComTableDump, ""},
		{"COM_CONNECT_OUT", mysqlComConnectOut, ""},
		{"COM_STMT_EXECUTE, unknown statement", protocol.ComStmtExecute, "\xf0\x00\x00\x00" + execute},
		{"COM_SET_OPTION", protocol.ComSetOption, "\x01\x00"},
		{"COM_DAEMON", mysqlComDaemon, ""},
		{"COM_RESET_CONNECTION", protocol.ComResetConn, ""},
		{"command 0x22", 0x22, ""},
		{"command 0x70", 0x70, ""},
		{"KILL, unknown id", protocol.ComQuery, "KILL 2000000000"},
		{"KILL QUERY of oneself", protocol.ComQuery, "KILL QUERY CONNECTION_ID()"},
	} {
		rows = append(rows, matrixRow{name: c.name, try: func(s *side) { s.try(c.cmd, c.arg) }})
	}
	for _, form := range []string{"KILL", "KILL CONNECTION", "KILL QUERY", "KILL HARD", "KILL SOFT QUERY"} {
		rows = append(rows, matrixRow{name: form, try: func(s *side) {
			s.kill(func(id string) { s.try(protocol.ComQuery, form+" "+id) })
		}})
	}
	for _, c := range []struct {
		name string
		cmd  protocol.Command
	}{{"CLONE", mysqlComClone}, {"GROUP_REPLICATION", mysqlComGroupReplication}} {
		rows = append(rows, matrixRow{
			name: "COM_" + c.name, differs: "1047, it is for servers among themselves",
			try: func(s *side) {
				if s.addr == s.e.addr || s.e.Servers[0].IsMariaDB() {
					s.try(c.cmd, "")
				} // no client could have such a dialogue
			},
		})
	}
	return rows
}

// dialogueRows are the rows for all longer dialogues.
func dialogueRows(schema string) []matrixRow {
	load := func(content []byte) func(*side) {
		return func(s *side) {
			s.hear(s.doFile(protocol.ComQuery, "LOAD DATA LOCAL INFILE 'x' INTO TABLE u (a); SELECT COUNT(*) > 0 FROM t", content))
		}
	}
	figures := func(cmd protocol.Command) func(*side) {
		return func(s *side) {
			answer := s.do(cmd, "")
			if answer[4] != 0xff {
				answer = answer[:protocol.HeaderSize+1]
				protocol.PutHeader(answer, 1, answer[3])
			}
			s.hear(answer)
		}
	}
	prepared := func(sql string, cmd protocol.Command, rest string) func(*side) {
		return func(s *side) { s.try(cmd, s.prepare(sql)+rest) }
	}
	dump := func(cmd protocol.Command, argument string) func(*side) {
		return func(s *side) {
			s.query("SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE', @mariadb_slave_capability = 4")
			s.send(packet(command(cmd, argument)))
			s.until("a binary log")
			s.Close()
		}
	}
	compressed := func(s *side) {
		s.try(protocol.ComQuery, "SELECT REPEAT('x', 100000)")
		if s.frames == nil || s.frames.packed == 0 {
			s.t.Errorf("at %s nothing was compressed", s.addr)
		}
	}
	return []matrixRow{
		{name: "COM_QUIT", try: func(s *side) {
			s.send(packet(command(protocol.ComQuit, "")))
			s.heard = append(s.heard, s.ended())
		}},
		{name: "empty packet", try: func(s *side) {
			s.send(packet(nil))
			s.hear(s.receive(protocol.ShapeOne, nil))
		}},
		{name: "COM_QUERY, pipelined", try: func(s *side) {
			for range 50 {
				s.send(packet(command(protocol.ComQuery, "SELECT * FROM t")))
			}
			for range 50 {
				s.hear(s.receive(protocol.ShapeResult, nil))
			}
		}},
		{name: "COM_QUERY, LOCAL INFILE", try: load(file("1\n2\n"))},
		{name: "COM_QUERY, LOCAL INFILE that the client refuses", try: load(file())},
		{name: "COM_STATISTICS", try: figures(protocol.ComStatistics)},
		{name: "COM_PROCESS_INFO", try: figures(protocol.ComProcessInfo)},
		{name: "COM_SHUTDOWN, without the right", try: func(s *side) {
			if answer := s.change(powerless, powerless, "", "caching_sha2_password"); answer[4] != 0 {
				s.t.Fatalf("at %s: %v", s.addr, serverError(s.t, answer))
			}
			s.try(protocol.ComShutdown, "")
		}},
		{name: "COM_CHANGE_USER", differs: "the OK tells what that of a login does", try: func(s *side) {
			answer := s.change(s.e.User, s.e.Password, schema, "caching_sha2_password")
			s.heard = append(s.heard, answer[protocol.HeaderSize:])
			s.try(protocol.ComQuery, "SELECT DATABASE(), @x")
		}},
		{name: "COM_CHANGE_USER, wrong password", differs: "the session ends", try: func(s *side) {
			s.hear(s.change(s.e.User, "wrong", schema, "caching_sha2_password"))
			s.send(packet(command(protocol.ComPing, "")))
			if b, err := s.raw(); err == nil {
				s.hear(b)
			}
		}},
		{name: "COM_PROCESS_KILL", try: func(s *side) {
			s.kill(func(id string) {
				var n uint32
				_, _ = fmt.Sscan(id, &n)
				s.try(protocol.ComProcessKill, string(binary.LittleEndian.AppendUint32(nil, n)))
			})
		}},
		{name: "KILL, prepared", try: func(s *side) {
			s.kill(func(id string) { s.try(protocol.ComStmtExecute, s.prepare("KILL "+id)+execute) })
		}},
		{name: "COM_REGISTER_SLAVE", try: func(s *side) {
			s.try(protocol.ComRegisterSlave, "\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		}},
		{name: "COM_BINLOG_DUMP", try: dump(protocol.ComBinlogDump, "\x04\x00\x00\x00\x01\x00\x0a\x00\x00\x00log.000001")},
		{name: "COM_BINLOG_DUMP_GTID", try: dump(protocol.ComBinlogDumpGTID, "\x01\x00\x0b\x00\x00\x00\x0a\x00\x00\x00log.000001\x04\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")},
		{name: "COM_STMT_PREPARE", try: func(s *side) { s.prepare("SELECT ?, a FROM t WHERE id = ?") }},
		{name: "COM_STMT_PREPARE, an error", try: func(s *side) { s.prepare("SELECT * FROM no_such_table") }},
		{name: "COM_STMT_EXECUTE", try: prepared("SELECT ? + 1, ?", protocol.ComStmtExecute, execute+binding("\x00", typeLong+typeString, "\x05\x00\x00\x00\x03abc"))},
		{name: "COM_STMT_EXECUTE, with the types of the last time", try: func(s *side) {
			id := s.prepare("SELECT ? + 1, ?")
			s.try(protocol.ComStmtExecute, id+execute+binding("\x00", typeLong+typeString, "\x05\x00\x00\x00\x03abc"))
			s.try(protocol.ComStmtExecute, id+execute+binding("\x00", "", "\x06\x00\x00\x00\x01d"))
		}},
		{name: "COM_STMT_EXECUTE, OUT parameters", try: prepared("CALL two(?, ?)", protocol.ComStmtExecute, execute+binding("\x00", typeLong+typeLong, "\x05\x00\x00\x00\x00\x00\x00\x00"))},
		{name: "COM_STMT_EXECUTE, id -1", try: func(s *side) {
			s.prepare("SELECT * FROM t")
			s.try(protocol.ComStmtExecute, "\xff\xff\xff\xff"+execute)
		}},
		{name: "COM_STMT_EXECUTE, cursor, and COM_STMT_FETCH", try: func(s *side) {
			id := s.prepare("SELECT * FROM t ORDER BY id")
			s.try(protocol.ComStmtExecute, id+withCursor)
			s.try(protocol.ComStmtFetch, id+"\x01\x00\x00\x00")
			s.try(protocol.ComStmtFetch, id+"\x09\x00\x00\x00")
		}},
		{name: "COM_STMT_SEND_LONG_DATA", try: func(s *side) {
			id := s.prepare("SELECT ?")
			s.try(protocol.ComStmtLongData, id+"\x00\x00first ")
			s.try(protocol.ComStmtLongData, id+"\x00\x00second")
			s.try(protocol.ComStmtExecute, id+execute+binding("\x00", typeBlob, ""))
		}},
		{name: "COM_STMT_RESET", try: prepared("SELECT ?", protocol.ComStmtReset, "")},
		{name: "COM_STMT_CLOSE", try: func(s *side) {
			id := s.prepare("SELECT 1")
			s.try(protocol.ComStmtClose, id)
			if err := serverError(s.t, s.do(protocol.ComStmtExecute, id+execute)); err.Code != 1243 {
				s.t.Errorf("at %s an execution behind it got %v", s.addr, err)
			}
		}},
		{
			name: "COM_STMT_BULK_EXECUTE", needs: protocol.BulkOperations,
			login: wireLogin{Capabilities: allFraming | protocol.BulkOperations},
			try: func(s *side) {
				id := s.prepare("INSERT INTO u (a) VALUES (?)")
				s.try(protocol.ComStmtBulkExecute, id+bulk(0, []string{"one"}, []string{""}))
			},
		},
		{name: "compression by zlib", needs: protocol.Compress, login: wireLogin{Packing: mysqltest.Zlib}, try: compressed},
		{name: "compression by zstd", needs: protocol.CompressZstd, login: wireLogin{Packing: mysqltest.Zstd}, try: compressed},
	}
}

// capabilityRows are the flags that a client and a server may agree on.
func capabilityRows() (rows []matrixRow) {
	for _, c := range []struct {
		name string
		flag protocol.Capability
	}{
		{"FOUND_ROWS", protocol.FoundRows},
		{"IGNORE_SPACE", protocol.IgnoreSpace},
		{"INTERACTIVE", protocol.Interactive},
		{"LOCAL_FILES", protocol.LocalFiles},
		{"MULTI_STATEMENTS", protocol.MultiStatements},
		{"MULTI_RESULTS", protocol.MultiResults},
		{"PS_MULTI_RESULTS", protocol.PSMultiResults},
		{"CONNECT_ATTRS", protocol.ConnectAttrs},
		{"CAN_HANDLE_EXPIRED_PASSWORDS", protocol.ExpiredPasswords},
		{"SESSION_TRACK", protocol.SessionTrack},
		{"DEPRECATE_EOF", protocol.DeprecateEOF},
		{"OPTIONAL_RESULTSET_METADATA", protocol.OptionalMetadata},
		{"QUERY_ATTRIBUTES", protocol.QueryAttributes},
		{"PROGRESS", protocol.Progress},
		{"STMT_BULK_OPERATIONS", protocol.BulkOperations},
		{"EXTENDED_METADATA", protocol.ExtendedMetadata},
		{"CACHE_METADATA", protocol.CacheMetadata},
		{"BULK_UNIT_RESULTS", protocol.BulkUnitResults},
	} {
		rows = append(rows, matrixRow{
			name: "flag " + c.name, needs: c.flag, login: wireLogin{Capabilities: c.flag | protocol.Protocol41 | protocol.LongFlag | protocol.Transactions},
			try: func(s *side) {
				for _, sql := range []string{
					"SELECT * FROM t", "UPDATE t SET id = id", "SELECT COUNT (*) FROM t", "SELECT 1; SELECT 2", "CALL two(1, @o)",
					"SET time_zone = '+01:00'", "SELECT nothing", "SELECT @@wait_timeout",
				} {
					s.try(protocol.ComQuery, sql)
				}
				id := s.prepare("SELECT ?, a FROM t")
				attributed := s.caps.Has(protocol.QueryAttributes)
				for range 2 {
					if attributed {
						number := binary.LittleEndian.Uint32([]byte(id))
						s.try(protocol.ComStmtExecute, string(attributedExecution(number, []argument{textArg(0xfd, "v")}, nil, true)[1:]))
					} else {
						s.try(protocol.ComStmtExecute, id+execute+binding("\x00", typeString, "\x01v"))
					}
				}
			},
		})
	}
	return rows
}

// TestTheCompatibilityTableIsWhatCommandsDo runs every command directly and through the proxy, and
// compares the outcome with the column of docs/compatibility-tables.md for this server. Package
// matrix makes the page.
func TestTheCompatibilityTableIsWhatCommandsDo(t *testing.T) {
	server := mysqltest.Start(t, "--log-bin=log", "--server-id=1", "--local-infile=1", "--max-allowed-packet=64M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) {
		o.Users = append(o.Users, proxy.User{Name: powerless, Password: powerless})
	}})
	schema := e.Schemas[0]
	server.Exec(t, "SET GLOBAL log_bin_trust_function_creators = 1", "CREATE USER "+powerless+" IDENTIFIED BY '"+powerless+"'", "USE "+schema,
		"CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) DEFAULT 'x', j JSON)", "INSERT INTO t VALUES (1, 'one', '{}'), (2, NULL, '[]')",
		"CREATE TABLE u (n INT, a VARCHAR(20)) ENGINE=InnoDB",
		"CREATE PROCEDURE two(IN i INT, OUT o INT) BEGIN SELECT i AS a; SELECT * FROM t; SET o = i + 2; END",
		"CREATE PROCEDURE failing() BEGIN SELECT * FROM t; SELECT * FROM no_such_table; END")
	e.hold(t, 0)
	run := matrix.Commands{Server: matrix.Server(string(server.Flavour()), server.Version())}
	rows := slices.Concat(plainRows(schema), dialogueRows(schema))
	slices.SortStableFunc(rows, func(a, b matrixRow) int { return strings.Compare(a.name, b.name) })
	rows = append(rows, capabilityRows()...)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			run.Rows = append(run.Rows, matrix.Row{Name: row.name, Cell: e.cell(t, row)})
		})
	}
	if dir := matrix.Out(); dir != "" {
		if err := run.Write(dir); err != nil {
			t.Error(err)
		}
		return // the page is about to be made
	}
	text, err := os.ReadFile("../docs/compatibility-tables.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := matrix.Parse(string(text), matrix.CommandTable)
	if err != nil {
		t.Fatal(err)
	}
	column := table.Column(run.Server)
	if column == nil {
		t.Logf("the page has no column for %s", run.Server)
		return
	}
	for _, row := range run.Rows {
		if got, ok := column[row.Name]; !ok || got != row.Cell {
			t.Errorf("docs/compatibility-tables.md says %q about %s on %s, this run %q", got, row.Name, run.Server, row.Cell)
		}
	}
	if len(column) != len(run.Rows) {
		t.Errorf("docs/compatibility-tables.md has %d commands, want the %d that were tried", len(column), len(run.Rows))
	}
}

// cell tries a row on both sides and returns its cell of the table.
func (e *env) cell(t *testing.T, row matrixRow) string {
	t.Helper()
	var sides [2]*side
	for i, addr := range []string{e.Servers[0].Addr(), e.addr} {
		l := row.login
		l.Schema = e.Schemas[0]
		bare := e.Wire(t, addr, wireLogin{})
		offered := bare.hello.Greeting.Capabilities.Has(row.needs)
		bare.quit()
		s := &side{e: e, addr: addr, login: l}
		if sides[i] = s; !offered {
			s.heard = append(s.heard, []byte("not offered"))
			continue
		}
		s.wire = e.Wire(t, addr, l)
		defer s.quit()
		row.try(s)
	}
	direct, proxied := sides[0], sides[1]
	same := len(direct.heard) == len(proxied.heard)
	for i := 0; same && i < len(direct.heard); i++ {
		same = bytes.Equal(direct.heard[i], proxied.heard[i])
	}
	switch {
	case !same && row.differs == "":
		compare(t, row.name, bytes.Join(proxied.heard, []byte("|")), bytes.Join(direct.heard, []byte("|")))
		return "differs"
	case !same:
		return "differs: " + row.differs
	case direct.wire == nil:
		return "not offered"
	case direct.code != 0:
		return fmt.Sprintf("error %d", direct.code)
	}
	return "same"
}
