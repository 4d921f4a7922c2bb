package proxy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/sequence"
)

// A command with a wrong packet number is an error, which ends the session, whether the proxy or
// the server would answer it.
//
// Checklist 11.
// Checklist 25.
func TestAPacketOfAWrongNumberEndsTheSessionAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	numbered := func(payload []byte, num byte) []byte {
		b := packet(payload)
		b[3] = num
		return b
	}
	relayed, answered := command(protocol.ComQuery, "SELECT 1"), command(protocol.ComQuery, "SELECT NEXTVAL('s')")
	// first is the first packet of a command of 16 MB or more.
	first := func(begin string) []byte {
		return []byte("\xff\xff\xff\x00" + begin + strings.Repeat("x", protocol.MaxFragment-len(begin)))
	}
	type try struct {
		name string
		sent []byte
	}
	tries := []try{
		{"a header alone", []byte{9, 0, 0, 1}},
		{"the beginning of 16 MB", []byte{0xff, 0xff, 0xff, 2, byte(protocol.ComQuery)}},
		{"the second packet of a text", append(first("\x03SELECT '"), numbered([]byte("'"), 0)...)},
		{"the second packet of what cannot be so long", append(first("\x02"), numbered([]byte("x"), 3)...)},
		{"behind others", append(append(packet(relayed), packet(command(protocol.ComPing, ""))...), numbered(relayed, 1)...)},
	}
	for _, num := range []byte{1, 2, 0x80, 255} {
		for name, payload := range map[string][]byte{
			"what is relayed": relayed, "what is answered here": answered, "COM_PING": command(protocol.ComPing, ""), "COM_QUIT": command(protocol.ComQuit, ""),
			"a command without answer": command(protocol.ComStmtClose, "\x01\x00\x00\x00"), "a command that is none": {0x55}, "nothing": nil,
			"COM_INIT_DB": command(protocol.ComInitDB, "mysql"), "COM_RESET_CONNECTION": command(protocol.ComResetConn, ""),
		} {
			tries = append(tries, try{fmt.Sprintf("number %d of %s", num, name), numbered(payload, num)})
		}
	}
	for name, caps := range endings {
		t.Run(name, func(t *testing.T) {
			for _, x := range tries {
				p := e.Pair(t, 0, wireLogin{Capabilities: caps})
				p.query("DO 1") // a server is attached
				var answers [2][]byte
				for i, w := range []*wire{p.Direct, p.Proxy} {
					if _, err := w.Write(x.sent); err != nil {
						t.Logf("%s: %v", x.name, err)
					}
					answers[i] = w.ended()
				}
				compare(t, x.name, answers[1], answers[0])
				if !bytes.Contains(answers[1], []byte("\xff\x84\x04#08S01Got packets out of order")) {
					t.Errorf("%s: got %q, want error 1156", x.name, answers[1])
				}
			}
		})
	}
	eventually(t, "the ends are counted", func() bool {
		return ends(e.Proxy)["malformed"] == uint64(len(tries)*len(endings))
	})
}
