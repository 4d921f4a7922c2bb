package proxy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/test/mysqltest"
)

// Commands that only MySQL has.
const (
	mysqlComClone            = 0x20
	mysqlComGroupReplication = 0x21
)

// goesElsewhere says whether a command ends the session, the server, or the dialogue of commands
// and answers. Other tests cover those.
func goesElsewhere(cmd protocol.Command) bool {
	switch cmd {
	case protocol.ComQuit, protocol.ComShutdown, protocol.ComChangeUser, protocol.ComBinlogDump, protocol.ComBinlogDumpGTID:
		return true
	}
	return false
}

// Checklist 14.
// Checklist 24.
func TestEveryCommandByteIsAnsweredAsByTheServer(t *testing.T) {
	// COM_REFRESH closes tables, COM_PROCESS_INFO shows all sessions.
	e := newEnv(t, setup{Servers: []*mysqltest.Server{mysqltest.Start(t)}})
	arguments := []string{"", "\x00", "\x01", "\x00\x00\x00\x00", "\xf0\xf1\xf2\x7f\x00\x00\x00\x00\x00\x00\x00", "nothing\x00%", strings.Repeat("x", 300), strings.Repeat("y", 70_000)}
	for _, caps := range endings {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		for b := range 256 {
			cmd := protocol.Command(b)
			if goesElsewhere(cmd) {
				continue
			}
			for _, arg := range arguments {
				if (cmd == mysqlComClone || cmd == mysqlComGroupReplication) && !e.Servers[0].IsMariaDB() {
					if err := serverError(t, p.Proxy.command(cmd, arg)); err.Code != 1047 {
						t.Errorf("command %d: got %v, want 1047", cmd, err)
					}
					continue // servers use such dialogues among themselves
				}
				if cmd == protocol.ComProcessKill && len(arg) > 4 && arg[3] == 0x7f {
					continue // the id may be that of a real connection
				}
				p.query("DO 1") // otherwise MySQL collects its errors and counts them in later answers
				want, got := p.Direct.command(cmd, arg), p.Proxy.command(cmd, arg)
				if cmd == protocol.ComStatistics || cmd == protocol.ComProcessInfo {
					want, got = want[4:6], got[4:6] // the figures differ
				}
				if len(arg) < 4 && (cmd == protocol.ComStmtReset || cmd == protocol.ComStmtFetch) {
					// MariaDB reads the id beyond the packet's end.
					want, got = statementNumber.ReplaceAll(want, nil), statementNumber.ReplaceAll(got, nil)
				}
				if len(got) > 4 && got[4] == 0xff {
					// The proxy's error for a longer command has a higher packet number, because
					// the proxy reads the command whole.
					compare(t, fmt.Sprintf("command %d with %d bytes %.20q", cmd, len(arg), arg), got[4:], want[4:])
					continue
				}
				compare(t, fmt.Sprintf("command %d with %d bytes %.20q", cmd, len(arg), arg), got, want)
			}
		}
		p.query("SELECT 'still here'")
	}
}

// command sends any command and returns all packets before the answer to a ping behind it.
func (w *wire) command(cmd protocol.Command, argument string) (got []byte) {
	w.t.Helper()
	all, _ := protocol.AppendPacket(nil, command(cmd, argument), 0)
	w.send(all)
	shape := cmd.AnswerShape()
	if shape == protocol.ShapeUnknown {
		shape = protocol.ShapeOne
	}
	if shape != protocol.ShapeNone {
		got = bytes.Clone(w.receive(shape, nil))
	}
	w.send(packet(command(protocol.ComPing, "")))
	for {
		b, err := w.raw()
		if err != nil {
			w.t.Fatalf("ping after command %d %.20q: %v", cmd, argument, err)
		}
		if b[4] == 0 {
			return got
		}
		// MySQL reports a malformed command even where the command has no answer.
		got = append(got, b...)
	}
}
