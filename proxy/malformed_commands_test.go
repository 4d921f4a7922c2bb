package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// malformedEnv is a proxy with an account of few rights, so that no bytes do harm.
func malformedEnv(t testing.TB) (e *env, login wireLogin) {
	e = newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.Users = append(o.Users, proxy.User{Name: o.Users[0].Name + "_lesser", Password: "lesser"})
		o.LoginTimeout = 2 * time.Second // for a change of user, whose dialogue may wait for the client
	}})
	user, password := e.User+"_lesser", "lesser"
	e.Servers[0].Exec(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", user, password), fmt.Sprintf("GRANT ALL ON %s.* TO %s@'%%'", e.Schemas[0], user),
		"USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT UNSIGNED, a TEXT)")
	t.Cleanup(func() { e.Servers[0].Exec(t, "DROP USER "+user) })
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	hello, _ := e.Shards.Routes().Greeting()
	caps := allFraming | (protocol.QueryAttributes|protocol.BulkOperations|protocol.BulkUnitResults)&hello.Capabilities
	return e, wireLogin{User: &user, Password: &password, Schema: e.Schemas[0], Capabilities: caps}
}

// preparedForMalformed are prepared at the start of each session: they have the ids from 1 on.
var preparedForMalformed = []string{
	"SELECT ?, ?", "INSERT INTO t VALUES (NEXTVAL('s'), ?)", "SELECT NEXTVAL('s')", "KILL QUERY ?", "SET @x = ?", "INSERT INTO t VALUES (?, ?)",
	"INSERT INTO t VALUES (NEXTVAL('s') + ? + LAST_INSERT_ID(), CONCAT(?, NEXTVAL('s')))",
}

// wellFormed are commands with all optional parts. Cutting and changing them makes the malformed
// ones.
func wellFormed(attributes bool) (all [][]byte) {
	add := func(cmd protocol.Command, argument string) { all = append(all, command(cmd, argument)) }
	text := ""
	if attributes {
		text = protocol.NoAttributes
		add(protocol.ComQuery, "\x02\x01\x00\x01\xfd\x00\x01a\x08\x00\x01b\x03xyz\x01\x02\x03\x04\x05\x06\x07\x08SELECT 1")
	}
	for _, sql := range []string{"SELECT 'x'", "INSERT INTO t VALUES (NEXTVAL('s'), 'x')", "SELECT NEXTVAL('s')", "SET @x = 'y'"} {
		add(protocol.ComQuery, text+sql)
		add(protocol.ComStmtPrepare, sql)
	}
	for id := range uint32(len(preparedForMalformed) + 2) {
		head := string(binary.LittleEndian.AppendUint32(nil, id))
		params := binding("\x00", typeLong+typeString, "\x05\x00\x00\x00\x03abc")
		if attributes {
			params = "\x02\x00\x01" + typeLong + "\x01a" + typeString + "\x01b" + "\x05\x00\x00\x00\x03abc"
		}
		add(protocol.ComStmtExecute, head+"\x00\x01\x00\x00\x00"+params)
		add(protocol.ComStmtExecute, head+"\x08\x01\x00\x00\x00"+params)
		add(protocol.ComStmtExecute, head+"\x00\x01\x00\x00\x00"+binding("\x00", typeString, "\xfc\x03\x00abc"))
		add(protocol.ComStmtBulkExecute, head+bulkRows(0, typeLong+typeString, bulkLong(1)+bulkText("a"), bulkNull+bulkDefault))
		add(protocol.ComStmtLongData, head+"\x00\x00abc")
		add(protocol.ComStmtReset, head)
		add(protocol.ComStmtFetch, head+"\x01\x00\x00\x00")
		add(protocol.ComStmtClose, head)
	}
	add(protocol.ComInitDB, "mysql")
	add(protocol.ComFieldList, "t\x00a%")
	add(protocol.ComSetOption, "\x00\x00")
	add(protocol.ComProcessKill, "\x00\x00\x00\x00")
	add(protocol.ComRefresh, "\x01")
	add(protocol.ComCreateDB, "no_right_to_it")
	add(protocol.ComDropDB, "no_right_to_it")
	add(protocol.ComStatistics, "x")
	add(protocol.ComDebug, "x")
	add(protocol.ComResetConn, "x")
	add(protocol.ComChangeUser, "somebody\x00\x03abcmysql\x00\x2d\x00mysql_native_password\x00\x04\x01a\x01b")
	add(protocol.ComRegisterSlave, "\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	add(protocol.ComBinlogDump, "\x04\x00\x00\x00\x01\x00\x0a\x00\x00\x00log.000001")
	add(protocol.ComBinlogDumpGTID, "\x01\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	add(protocol.ComTableDump, "\x01a\x01b")
	add(protocol.ComShutdown, "x")
	return all
}

// malformedSession is a connection that malformed commands are tried on.
type malformedSession struct {
	e     *env
	login wireLogin
	w     *wire
	marks int
}

func (m *malformedSession) open(t testing.TB) {
	if !eventually(t, "a login in time", func() bool {
		var err error
		if m.w, err = m.e.tryWire(t, m.e.Addr(), m.login); err != nil {
			t.Log(err)
		}
		return err == nil
	}) {
		t.FailNow()
	}
	id := uint32(0)
	for _, sql := range preparedForMalformed {
		a := m.w.do(protocol.ComStmtPrepare, sql)
		if a[4] == 0xff && strings.HasPrefix(sql, "KILL") {
			continue // MySQL has no parameter in this place
		}
		if id++; a[4] != 0 || binary.LittleEndian.Uint32(a[5:]) != id {
			t.Fatalf("prepare %s: got %x", sql, a)
		}
	}
}

// survive sends a command, and a query after it. Whatever the answer to the command, the session
// must answer the query or end: it must not hang, and must not affect others.
func (m *malformedSession) survive(t testing.TB, payload []byte) {
	t.Helper()
	if m.w == nil {
		m.open(t)
	}
	m.marks++
	mark := fmt.Sprintf("mark %d.", m.marks)
	text := "SELECT '" + mark + "'"
	if m.w.caps.Has(protocol.QueryAttributes) {
		text = protocol.NoAttributes + text
	}
	all, _ := protocol.AppendPacket(nil, payload, 0)
	all = append(all, packet(command(protocol.ComQuery, text))...)
	if err := m.w.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.w.Write(all); err != nil {
		t.Fatalf("after command %x: %v", payload[:min(len(payload), 100)], err)
	}
	var got []byte
	for {
		got = append(got, m.w.Buffered()...)
		m.w.Discard(len(m.w.Buffered()))
		if bytes.Contains(got, []byte(mark+"\x07\x00\x00")) || bytes.Contains(got, []byte(mark+"\x05\x00\x00")) {
			return // the row, and the header of the packet that ends it
		}
		switch err := m.w.Fill(); {
		case err == nil:
		case strings.Contains(err.Error(), "timeout"):
			t.Fatalf("command %x: nothing came for %s, after %d bytes: %.200q", payload[:min(len(payload), 100)], wireTimeout, len(got), got)
		default: // the session ended
			m.e.checkFaults(t, payload)
			m.w.Close()
			m.w = nil
			return
		}
	}
}

// Checklist 25.
func TestMalformedCommandsOfEveryKindAreSurvived(t *testing.T) {
	e, login := malformedEnv(t)
	for _, whole := range wellFormed(login.Capabilities.Has(protocol.QueryAttributes)) {
		m := &malformedSession{e: e, login: login}
		if cmd := protocol.Command(whole[0]); cmd == protocol.ComChangeUser || cmd == protocol.ComBinlogDump || cmd == protocol.ComBinlogDumpGTID {
			m.survive(t, whole) // a new session for each takes long; the fuzz target cuts these
			continue
		}
		for n := range len(whole) + 1 {
			m.survive(t, whole[:n])
		}
		for i := 1; i < len(whole); i++ {
			for _, b := range []byte{0x00, 0xff, 0x80, 0xfb, 0xfc, 0xfe} {
				changed := bytes.Clone(whole)
				changed[i] = b
				m.survive(t, changed)
			}
		}
		m.survive(t, append(bytes.Clone(whole), bytes.Repeat([]byte{0xee}, 50_000)...))
		if m.w != nil {
			m.w.quit()
		}
	}
}

// FuzzCommand sends any command to a session in front of a real server: the session must answer the
// next command, or end.
func FuzzCommand(f *testing.F) {
	e, login := malformedEnv(f)
	for _, whole := range wellFormed(login.Capabilities.Has(protocol.QueryAttributes)) {
		f.Add(whole)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) < 1<<16 {
			m := &malformedSession{e: e, login: login}
			m.survive(t, payload)
		}
	})
}
