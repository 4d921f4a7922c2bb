package proxy_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"seqproxy/protocol"
)

// behind is a session through the proxy, or its twin at the server. No ping follows its commands.
type behind struct {
	*wire
	proxied bool
	schema  string
	ids     map[string]uint32 // of prepared statements, by the letter in their text
}

// behinds returns two sessions: through the proxy, and direct.
func (x *tickets) behinds(t *testing.T) [2]*behind {
	t.Helper()
	p := x.pair(t, wireLogin{Capabilities: allFraming &^ protocol.SessionTrack})
	return [2]*behind{{p.Proxy, true, x.SequenceSchema, map[string]uint32{}}, {p.Direct, false, x.twin, map[string]uint32{}}}
}

// step runs a text, or one of the commands below, and returns what the answer tells of the session.
// Direct it runs what stands behind " => ", if anything: the rows are others then, and not told.
func (b *behind) step(text string) string {
	b.t.Helper()
	proxied, direct, other := strings.Cut(text, " => ")
	if text = proxied; other && !b.proxied {
		text = direct
	}
	cmd, argument := protocol.ComQuery, text
	name, rest, _ := strings.Cut(text, " ")
	named := string(binary.LittleEndian.AppendUint32(nil, b.ids[rest]))
	switch name {
	case "ping":
		cmd, argument = protocol.ComPing, ""
	case "init":
		cmd, argument = protocol.ComInitDB, b.schema
	case "fields":
		cmd, argument = protocol.ComFieldList, rest+"\x00"
	case "statistics":
		cmd, argument = protocol.ComStatistics, ""
	case "option":
		cmd, argument = protocol.ComSetOption, "\x00\x00"
	case "prepare": // a letter and a text
		cmd, argument = protocol.ComStmtPrepare, rest[2:]
	case "reset":
		cmd, argument = protocol.ComStmtReset, named
	case "execute":
		cmd, argument = protocol.ComStmtExecute, named+"\x00\x01\x00\x00\x00"
	case "use":
		argument = "USE " + b.schema
	}
	sent := command(cmd, argument)
	b.send(packet(sent))
	shape := protocol.AnswerTo(sent)
	got := b.receive(shape, nil)
	switch {
	case len(got) > protocol.HeaderSize && got[protocol.HeaderSize] == 0xff:
		return fmt.Sprint("error ", serverError(b.t, got).Code)
	case cmd == protocol.ComStatistics:
		return "statistics"
	case cmd == protocol.ComStmtPrepare:
		b.ids[rest[:1]] = binary.LittleEndian.Uint32(got[protocol.HeaderSize+1:])
		return "prepared"
	}
	told := fmt.Sprintf("%d warnings, in a transaction: %v", b.answer.Warnings, b.answer.Status.Has(protocol.InTransaction))
	if cmd == protocol.ComQuery && b.answer.Rows && !other {
		for _, row := range b.decode(got) {
			if len(row) == 3 { // a warning, whose text and exact level are the proxy's own
				row = []string{fmt.Sprint(row[0] == "Error"), row[1]}
			}
			told += fmt.Sprint(", ", row)
		}
	}
	return told
}

// same runs steps in both sessions and compares all answers.
func same(t *testing.T, both [2]*behind, steps ...string) {
	t.Helper()
	for i, step := range steps {
		if got, want := both[0].step(step), both[1].step(step); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", strings.Join(steps[:i+1], "; "), got, want)
		}
	}
}

const oneTicket = "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'users'"

// An error may have ended a transaction, and does not tell so.
func TestATransactionThatAnErrorEndedIsOverInTheProxysAnswers(t *testing.T) {
	x := newTickets(t)
	for _, begin := range []string{"BEGIN", "SET autocommit = 0"} {
		for _, between := range []string{"prepare s DO 0", ""} {
			for _, own := range []string{
				"SELECT NEXTVAL('photos') => SELECT LAST_INSERT_ID(7)", "execute n", oneTicket, "SHOW SEQUENCES => SHOW VARIABLES LIKE 'none'",
			} {
				steps := []string{
					"prepare n SELECT NEXTVAL('photos') => prepare n SELECT LAST_INSERT_ID(5)", begin, "UPDATE photos SET n = 1",
					"CREATE TABLE photos (a INT)", own, "SELECT 1", "ROLLBACK", // the server has begun a transaction where the ticket has
				}
				if between != "" {
					steps = slices.Insert(steps, 4, between)
				}
				same(t, x.behinds(t), steps...)
			}
		}
	}
}

func TestATransactionThatADeadlockEndedIsOverInTheProxysAnswers(t *testing.T) {
	x := newTickets(t)
	for _, schema := range []string{x.SequenceSchema, x.twin} {
		x.exec("INSERT INTO " + schema + ".photos VALUES (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1)")
	}
	both := x.behinds(t)
	var told [2][]string
	for i, b := range both {
		heavy := x.Wire(t, x.Servers[0].Addr(), wireLogin{Schema: b.schema})
		heavy.query("BEGIN")
		heavy.query("UPDATE photos SET n = n + 1 WHERE id > 1") // so InnoDB gives up the other one
		b.step("BEGIN")
		b.step("UPDATE photos SET n = n + 1 WHERE id = 1")
		heavy.send(packet(command(protocol.ComQuery, "UPDATE photos SET n = n + 1 WHERE id = 1")))
		for _, step := range []string{
			"UPDATE photos SET n = n + 1 WHERE id = 2", "SELECT NEXTVAL('photos') => SELECT LAST_INSERT_ID(7)", "UPDATE photos SET n = n WHERE id = 9",
		} {
			told[i] = append(told[i], b.step(step))
		}
		heavy.receive(protocol.ShapeResult, nil)
		heavy.query("ROLLBACK")
	}
	if fmt.Sprint(told[0]) != fmt.Sprint(told[1]) || told[0][0] != "error 1213" {
		t.Errorf("got  %q\nwant %q", told[0], told[1])
	}
}

func TestWhatAStatementOnAnotherShardsSchemaLeftIsShown(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	both := [2]*behind{}
	for i, addr := range []string{e.Addr(), e.Servers[1].Addr()} {
		both[i] = &behind{wire: e.Wire(t, addr, wireLogin{Schema: e.Schemas[i]}), proxied: i == 0, schema: e.Schemas[i]}
	}
	for _, statement := range []string{"CREATE DATABASE " + e.Schemas[1], "CREATE DATABASE IF NOT EXISTS " + e.Schemas[1]} {
		same(t, both, "SELECT CAST('x' AS SIGNED)", statement, "SHOW WARNINGS")
		for _, counts := range []string{"SELECT ROW_COUNT()", "SELECT @@error_count"} {
			both[0].step(statement)
			if got := both[0].step(counts); got != "error 1235" {
				t.Errorf("%s; %s: got %s, want error 1235", statement, counts, got)
			}
		}
	}
}

// sameBehind compares what each question shows behind steps.
func sameBehind(t *testing.T, both [2]*behind, questions []string, steps ...string) {
	t.Helper()
	for _, question := range questions {
		var told [2]string
		for i, b := range both {
			for _, step := range steps {
				b.step(step)
			}
			told[i] = b.step(question)
		}
		if told[0] != told[1] {
			t.Errorf("%s; %s:\ngot  %s\nwant %s", strings.Join(steps, "; "), question, told[0], told[1])
		}
	}
}

// A command may keep what the last statement left. It must not uncover what the server had before.
func TestWhatTheProxyLeftOutlivesACommandThatKeepsIt(t *testing.T) {
	x := newTickets(t)
	both := x.behinds(t)
	same(t, both, "prepare n SELECT NEXTVAL('photos') => prepare n SELECT LAST_INSERT_ID(5)", "prepare u UPDATE photos SET n = 1")
	betweens := []string{"ping", "init", "statistics", "reset u", "reset n", "SELECT NEXTVAL('photos') => SELECT LAST_INSERT_ID(78)", "execute n", "SELECT CONNECTION_ID()"}
	if x.Servers[0].IsMariaDB() {
		betweens = append(betweens, "use")
	}
	for _, last := range []string{
		"SELECT NEXTVAL('nowhere') => SELECT * FROM nowhere", "CREATE SEQUENCE IF NOT EXISTS photos => CREATE TABLE IF NOT EXISTS photos (a INT)",
		"SHOW SEQUENCES => SHOW COLUMNS FROM photos", "SELECT NEXTVAL('photos') => SELECT LAST_INSERT_ID(77)", "execute n", oneTicket,
	} {
		for _, between := range betweens {
			sameBehind(t, both, []string{"SHOW COUNT(*) WARNINGS", "SHOW COUNT(*) ERRORS", "SELECT @@warning_count", "SELECT ROW_COUNT()"},
				"SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)", last, between)
		}
	}
}
