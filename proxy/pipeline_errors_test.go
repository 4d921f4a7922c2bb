package proxy_test

import (
	"encoding/binary"
	"testing"

	"seqproxy/protocol"
)

// The proxy finds these errors while the statement before them waits to be sent.
func TestErrorsInOneWriteKeepTheirPlace(t *testing.T) {
	e := newEnv(t, setup{})
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
	unknown := string(binary.LittleEndian.AppendUint32(nil, 99))
	waits := sent{protocol.ComQuery, "SELECT 'waits'"}
	for name, c := range map[string]sent{
		"an execution of no statement": {protocol.ComStmtExecute, unknown + "\x00\x01\x00\x00\x00"},
		"an execution cut short":       {protocol.ComStmtExecute, "\x01\x00"},
		"a reset of no statement":      {protocol.ComStmtReset, unknown},
		"a fetch of no statement":      {protocol.ComStmtFetch, unknown + "\x01\x00\x00\x00"},
		"the close of no statement":    {protocol.ComStmtClose, unknown},
	} {
		p.inOneWrite(name, waits, c, waits, c, c, waits)
	}
	// The same for an OK of the proxy's.
	w := p.Proxy
	w.query("CREATE SEQUENCE s")
	reset := sent{protocol.ComStmtReset, string(w.do(protocol.ComStmtPrepare, "SELECT NEXTVAL('s')")[5:9])}
	if answer := w.inOneWrite(waits, reset, waits)[1]; answer[4] != 0 {
		t.Errorf("the reset of a statement that the proxy keeps: got %x, want an OK", answer)
	}
}

// The server drops the data that it has, and those that still wait to be sent.
func TestLongDataThatWaitWithARefusedExecutionAreGone(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("CREATE TABLE photos (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(99))")
	w.query("CREATE SEQUENCE photos")
	w.query("CREATE TEMPORARY TABLE stays (id INT)") // the session does not end with the error
	id := string(w.do(protocol.ComStmtPrepare, "INSERT INTO photos (title) VALUES (?)")[5:9])
	data := func(s string) sent { return sent{protocol.ComStmtLongData, id + "\x00\x00" + s} }
	execute := sent{protocol.ComStmtExecute, id + "\x00\x01\x00\x00\x00" + binding("\x00", typeBlob, "")}
	w.query("ALTER SEQUENCE photos OWNED BY photos.id")
	answers := w.inOneWrite(data("refused"), execute)
	if err := serverError(t, answers[1]); err.Code != 1615 {
		t.Fatalf("an execution into a table that is bound now: got %v, want 1615", err)
	}
	w.query("ALTER SEQUENCE photos OWNED BY NONE")
	w.inOneWrite(data("taken"), execute)
	if got := w.rows("SELECT GROUP_CONCAT(title) FROM photos")[0]; got != "taken" {
		t.Errorf("got %q, want the data of the second try alone", got)
	}
}

// A number was taken, but the statement has no answer that could tell of it.
func TestTheWarningOfARefusedStatementIsNoneOfOthers(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("CREATE TABLE photos (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, n INT)")
	w.query("CREATE SEQUENCE gone MAXVALUE 2 NOCACHE START 2")
	w.query("SELECT NEXTVAL('gone')")
	const insert, refused = "INSERT INTO photos (n) VALUES (1)", "SELECT NEXTVAL('nears'), NEXTVAL('gone')"
	for name, texts := range map[string][]string{"behind it": {refused, insert}, "that waits": {insert, refused}} {
		w.query("CREATE SEQUENCE nears MAXVALUE 100 NOCACHE START 75")
		var steps []piped
		for _, text := range texts {
			steps = append(steps, asText(text))
		}
		for i, answer := range w.pipeline(steps) {
			if texts[i] == refused {
				if err := serverError(t, answer); err.Code != 4084 {
					t.Fatalf("%s: got %v, want 4084", refused, err)
				}
			} else if warnings := binary.LittleEndian.Uint16(answer[9:]); warnings != 0 {
				t.Errorf("the statement %s has %d warnings, want none", name, warnings)
			}
		}
		w.query("DROP SEQUENCE nears")
	}
}
