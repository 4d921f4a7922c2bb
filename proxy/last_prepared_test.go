package proxy_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// lastPrepared is MariaDB's id "-1" of the last prepared statement: clients send an execution right
// after the PREPARE, without waiting for the statement's id.
const lastPrepared = "\xff\xff\xff\xff"

// sent is a command of a pipeline.
type sent struct {
	cmd protocol.Command
	arg string
}

func prepares(sql string) sent { return sent{protocol.ComStmtPrepare, sql} }

// executes is an execution of the last prepared statement.
func executes(rest string) sent {
	return sent{protocol.ComStmtExecute, lastPrepared + "\x00\x01\x00\x00\x00" + rest}
}

// inOneWrite sends commands in one write and returns their answers, without the ids of statements.
func (w *wire) inOneWrite(commands ...sent) (answers [][]byte) {
	w.t.Helper()
	steps := make([]piped, len(commands))
	for i, c := range commands {
		steps[i] = piped{command(c.cmd, c.arg), protocol.AnswerTo(command(c.cmd, c.arg))}
	}
	answers = w.pipeline(steps)
	for i, c := range commands {
		if a := answers[i]; c.cmd == protocol.ComStmtPrepare && a[4] == 0 {
			clear(a[5:9])
		}
	}
	return answers
}

func (p *pair) inOneWrite(name string, commands ...sent) {
	p.t.Helper()
	want, got := p.Direct.inOneWrite(commands...), p.Proxy.inOneWrite(commands...)
	for i := range want {
		compare(p.t, fmt.Sprintf("%s, answer %d, to command %d %.100q", name, i+1, commands[i].cmd, commands[i].arg), got[i], want[i])
	}
}

// Checklist 11.
// Checklist 13.
// Checklist 18.
// Checklist 20.
// Checklist 21.
func TestTheLastStatementPreparedIsMeantByMinusOne(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1), (2), (3)")
	number := binding("\x00", typeLong, "\x05\x00\x00\x00")
	reset := sent{protocol.ComStmtReset, lastPrepared}
	closed := sent{protocol.ComStmtClose, lastPrepared}
	ping := sent{protocol.ComPing, ""}
	for name, caps := range endings {
		if hello, _ := e.Shards.Routes().Greeting(); hello.Capabilities.Has(protocol.BulkOperations) {
			caps |= protocol.BulkOperations
		}
		for _, c := range []struct {
			name     string
			commands []sent
		}{
			{"nothing was prepared", []sent{executes(""), reset, closed, {protocol.ComStmtFetch, lastPrepared + "\x01\x00\x00\x00"}, ping}},
			{"without parameters", []sent{prepares("SELECT 1"), executes(""), executes("")}},
			{"with a parameter", []sent{prepares("SELECT ? + 1"), executes(number), executes(binding("\x00", "", "\x06\x00\x00\x00")), executes(binding("\x01", "", ""))}},
			{"the PREPARE fails", []sent{prepares("SELECT 1"), prepares("SELECT nothing"), executes(""), reset, closed, {protocol.ComStmtLongData, lastPrepared + "\x00\x00abc"}, {protocol.ComStmtFetch, lastPrepared + "\x01\x00\x00\x00"}, {protocol.ComQuery, "SHOW WARNINGS"}, ping}},
			{"the execution fails", []sent{prepares("SELECT (SELECT id FROM t)"), executes(""), executes(""), {protocol.ComQuery, "SHOW WARNINGS"}}},
			{"an execution too short", []sent{prepares("SELECT ?"), executes(""), {protocol.ComStmtExecute, lastPrepared}, executes("\x00\x01")}},
			{"the second of two", []sent{prepares("SELECT 'first'"), prepares("SELECT 'second'"), executes(""), closed, executes(""), reset}},
			{"closed and prepared again", []sent{prepares("SELECT 'first'"), closed, prepares("SELECT 'second'"), executes(""), closed, closed, executes("")}},
			{"statements in between", []sent{prepares("SELECT 'this'"), {protocol.ComQuery, "SELECT 'a'; SELECT 'b'"}, {protocol.ComQuery, "PREPARE s FROM 'SELECT 4'"}, executes(""), {protocol.ComQuery, "EXECUTE s"}, executes(""), {protocol.ComQuery, "DEALLOCATE PREPARE s"}, executes("")}},
			{"long data", []sent{prepares("SELECT CONCAT(?, '-')"), {protocol.ComStmtLongData, lastPrepared + "\x00\x00abc"}, {protocol.ComStmtLongData, lastPrepared + "\x00\x00def"}, executes(binding("\x00", typeBlob, "")), {protocol.ComStmtLongData, lastPrepared + "\x00\x00gone"}, reset, executes(binding("\x00", typeBlob, "\x03ghi"))}},
			{"a long execution", []sent{prepares("SELECT LENGTH(?)"), executes(binding("\x00", typeString, string(protocol.AppendLenEncBytes(nil, strings.Repeat("x", 200_000))))), ping}},
			{"long data in a long packet", []sent{prepares("SELECT LENGTH(?)"), {protocol.ComStmtLongData, lastPrepared + "\x00\x00" + strings.Repeat("x", 200_000)}, executes(binding("\x00", typeBlob, ""))}},
			{"a long execution of nothing", []sent{prepares("SELECT nothing"), executes(strings.Repeat("x", 200_000)), ping}},
			{"a cursor", []sent{
				prepares("SELECT id FROM t ORDER BY id"),
				{protocol.ComStmtExecute, lastPrepared + "\x01\x01\x00\x00\x00"},
				{protocol.ComStmtFetch, lastPrepared + "\x01\x00\x00\x00"},
				{protocol.ComStmtFetch, lastPrepared + "\x05\x00\x00\x00"},
				{protocol.ComStmtFetch, lastPrepared + "\x01\x00\x00\x00"},
				reset,
				{protocol.ComStmtFetch, lastPrepared + "\x01\x00\x00\x00"},
			}},
			{"SET", []sent{prepares("SET @a = 17"), executes(""), {protocol.ComQuery, "SELECT @a"}}},
			{"a transaction", []sent{prepares("START TRANSACTION"), executes(""), {protocol.ComQuery, "SELECT 1"}, {protocol.ComQuery, "ROLLBACK"}}},
			{"KILL", []sent{prepares("KILL QUERY ?"), executes(binding("\x00", typeLong, "\x00\x00\x00\x00"))}},
			{"a reset of the connection", []sent{prepares("SELECT 1"), {protocol.ComResetConn, ""}, executes("")}},
			{"in bulk", []sent{
				prepares("UPDATE t SET id = id + ? WHERE id > ?"),
				{protocol.ComStmtBulkExecute, lastPrepared + bulk(0, []string{"0", "0"}, []string{"0", "2"})},
				closed,
				{protocol.ComStmtBulkExecute, lastPrepared + bulk(0, []string{"0", "0"})},
			}},
		} {
			p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
			if !e.Servers[0].IsMariaDB() {
				// MySQL has no statement of this id, and collects errors about it.
				c.commands = slices.DeleteFunc(c.commands, func(s sent) bool { return s == ping || s.arg == "SHOW WARNINGS" })
			}
			p.inOneWrite(name+": "+c.name, c.commands...)
			p.query("SELECT 'still here'")
			p.Proxy.quit()
			p.Direct.quit()
		}
	}
}

// Checklist 11.
// Checklist 20.
// Checklist 21.
// Checklist 29.
func TestTheLastStatementPreparedMayBeTheProxys(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.Unknown = proxy.UnknownError }})
	if !e.Servers[0].IsMariaDB() {
		t.Skip("MySQL has no id for the last statement")
	}
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 100}); err != nil {
		t.Fatal(err)
	}
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT UNSIGNED, a LONGTEXT)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	number := func(answer []byte) uint64 { // number of an execution's only row
		t.Helper()
		packets := split(answer)
		if packets[0][0] == 0xff {
			t.Fatal(serverError(t, answer))
		}
		return binary.LittleEndian.Uint64(packets[2][2:])
	}

	// Answers of the proxy.
	answers := w.inOneWrite(prepares("SELECT NEXTVAL('s')"), executes(""), executes(""), sent{protocol.ComStmtReset, lastPrepared}, executes(""))
	for i, want := range map[int]uint64{1: 100, 2: 101, 4: 102} {
		if got := number(answers[i]); got != want {
			t.Errorf("answer %d: got number %d, want %d", i+1, got, want)
		}
	}
	// The proxy's own statement is the last one, also after one of the server's.
	answers = w.inOneWrite(prepares("SELECT 5"), prepares("SELECT NEXTVAL('s')"), executes(""), sent{protocol.ComStmtClose, lastPrepared}, executes(""))
	if got := number(answers[2]); got != 103 {
		t.Errorf("the statement of the proxy: got %d, want 103", got)
	}
	if err := serverError(t, answers[3+1]); err.Code != 1243 {
		t.Errorf("after the close: got %v, want 1243", err)
	}
	// With a number as a parameter of the proxy's, in all forms.
	answers = w.inOneWrite(
		prepares("INSERT INTO t VALUES (NEXTVAL('s'), ?)"),
		executes(binding("\x00", typeString, "\x03one")),
		executes(binding("\x00", "", "\x03two")),
		sent{protocol.ComStmtLongData, lastPrepared + "\x00\x00three"},
		executes(binding("\x00", typeBlob, "")),
		executes(binding("\x00", typeString, string(protocol.AppendLenEncBytes(nil, strings.Repeat("4", 100_000))))),
		sent{protocol.ComQuery, "SELECT LAST_INSERT_ID()"},
	)
	for i, a := range answers[1:6] {
		if len(a) > 0 && a[4] == 0xff {
			t.Errorf("execution %d: %v", i+1, serverError(t, a))
		}
	}
	if got, want := strings.Join(w.rows("SELECT GROUP_CONCAT(id, LEFT(a, 5) ORDER BY id), LAST_INSERT_ID() FROM t"), " "), "104one,105two,106three,10744444 107"; got != want {
		t.Errorf("rows and last number: got %s, want %s", got, want)
	}
	// A PREPARE that the proxy refuses leaves no last statement.
	answers = w.inOneWrite(prepares("SELECT 6"), prepares("SELECT NEXTVAL('nothing')"), executes(""), prepares("UPDATE IGNORE t SET id = NEXTVAL('s')"), executes(""))
	for i, want := range map[int]uint16{1: 4091, 2: 1243, 3: 1235, 4: 1243} {
		if err := serverError(t, answers[i]); err.Code != want {
			t.Errorf("answer %d: got %v, want error %d", i+1, err, want)
		}
	}
}

// Checklist 13.
// Checklist 21.
func TestLongDataOfARefusedExecutionIsGone(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	id := string(w.do(protocol.ComStmtPrepare, "SELECT ? AS x")[5:9])
	w.query("USE " + e.Schemas[1])
	w.query("BEGIN")
	data := func(s string) sent { return sent{protocol.ComStmtLongData, id + "\x00\x00" + s} }
	execute := sent{protocol.ComStmtExecute, id + "\x00\x01\x00\x00\x00" + binding("\x00", typeBlob, "")}
	for _, padding := range []string{"", strings.Repeat("x", 100_000)} {
		// Also where the proxy does not keep the execution whole.
		refused := execute
		refused.arg += padding
		answers := w.inOneWrite(data("refused"), refused)
		if err := serverError(t, answers[1]); err.Code != 1235 {
			t.Fatalf("an execution on another shard inside a transaction: got %v, want 1235", err)
		}
	}
	w.query("ROLLBACK")
	answers := w.inOneWrite(data("taken"), execute)
	if row := string(split(answers[1])[2]); row != "\x00\x00\x05taken" {
		t.Errorf("got row %q, want the data of the second try alone", row)
	}
}
