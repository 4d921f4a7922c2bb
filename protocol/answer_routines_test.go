package protocol

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"seqproxy/test/mysqltest"
)

// These tests find where an answer of a real server ends, for each command that runs a statement,
// each flag of an execution and each set of login flags. A ping follows the command. The answer
// ends where packet numbers start again for the answer to the ping. So nothing that Answer believes
// decides where the answer has to end.

// delimited is a command's answer.
type delimited struct {
	bytes []byte
	last  []byte // payload of its last packet
}

// bound sends a command with a ping behind it and returns the answer, which must have
// fewer than 256 packets.
func (r *recorder) bound(payload string) (a delimited) {
	r.t.Helper()
	b, _ := AppendPacket(nil, []byte(payload), 0)
	r.send(append(b, pingPacket...))
	for {
		p := r.packet()
		if p[3] == 1 && len(a.bytes) > 0 {
			if p[4] != headerOK {
				r.t.Fatalf("%.100q: got the ping's answer %x, after\n%x", payload, p, a.bytes)
			}
			return a
		}
		if p[3] == 0 {
			r.t.Fatalf("%.100q: an answer of 255 packets and more", payload)
		}
		a.bytes, a.last = append(a.bytes, p...), p[HeaderSize:]
	}
}

// walks compares the end that Answer finds with the true end.
func (a delimited) walks(t *testing.T, name, payload string, caps Capability) walked {
	t.Helper()
	shape := AnswerTo([]byte(payload))
	whole := slices.Concat(a.bytes, answerBytes(okBytes(0, 2, 0, "")))
	got := walkIn(t, shape, caps, whole)
	if got.Event != Done || got.Accepted != len(a.bytes) {
		t.Errorf("%s: the walk ends with event %d at byte %d, the answer at %d:\n%x", name, got.Event, got.Accepted, len(a.bytes), a.bytes)
		return got
	}
	if split := walkIn(t, shape, caps, whole, everyByte(len(whole))...); !split.equal(got) {
		t.Errorf("%s: byte by byte: got %+v, want %+v", name, split, got)
	}
	if reference := referenceWalk(shape, caps, whole); !reference.equal(got) {
		t.Errorf("%s: reference: got %+v, want %+v", name, reference, got)
	}
	return got
}

// routineRun makes all calls on one connection.
type routineRun struct {
	*recorder
	name string
}

// text makes a COM_QUERY.
func (r *routineRun) text(sql string) string {
	if r.caps.Has(QueryAttributes) {
		sql = NoAttributes + sql
	}
	return string(rune(ComQuery)) + sql
}

// prepared prepares a statement, and returns its id; "" if the server cannot prepare it.
func (r *routineRun) prepared(sql string) (id string) {
	r.t.Helper()
	a := r.bound(string(rune(ComStmtPrepare)) + sql)
	if a.bytes[HeaderSize] == headerOK {
		return string(a.bytes[HeaderSize+1 : HeaderSize+5])
	}
	// the latter of several statements, and of MariaDB's texts on MySQL
	const cannotPrepare, syntax = 1295, 1064
	if code := binary.LittleEndian.Uint16(a.last[1:]); code != cannotPrepare && code != syntax {
		r.t.Errorf("%s: prepare %s: error %d: %q", r.name, sql, code, a.last)
	}
	return ""
}

// execution makes a COM_STMT_EXECUTE.
func (r *routineRun) execution(id string, flags byte, c mysqltest.RoutineCall) string {
	payload := string(rune(ComStmtExecute)) + id + string([]byte{flags, 1, 0, 0, 0})
	n := strings.Count(c.SQL, "?")
	switch {
	case c.Arguments == "":
		return payload
	case !r.caps.Has(QueryAttributes):
		return payload + "\x00\x01" + c.Arguments
	}
	payload += string(rune(n)) + "\x00\x01"
	for i := range n {
		payload += c.Arguments[2*i:2*i+2] + "\x00" // the name, empty
	}
	return payload + c.Arguments[2*n:]
}

// run runs a call as text and prepared, with and without a cursor.
func (r *routineRun) run(c mysqltest.RoutineCall, flags []byte) (executed, cursors int) {
	r.t.Helper()
	// else it may be an error
	several := r.caps.Has(MultiResults | MultiStatements | PSMultiResults)
	check := func(how, payload string, ends byte) {
		r.t.Helper()
		a := r.bound(payload)
		name := fmt.Sprintf("%s: %s: %s", r.name, how, c.SQL)
		got := a.walks(r.t, name, payload, r.caps)
		if several && (a.last[0] != ends || got.Rows != c.Rows || (got.ErrCode != 0) != (ends == mysqltest.EndsERR)) {
			r.t.Errorf("%s: got the last packet %.40q, rows %v, want one that begins with %#x, rows %v", name, a.last, got.Rows, ends, c.Rows)
		}
	}
	if c.Arguments == "" {
		check("text", r.text(c.SQL), c.Ends)
	}
	id := r.prepared(c.SQL)
	if id == "" {
		return 0, 0
	}
	for _, f := range flags {
		ends := c.Ends
		if c.NoCursor && f&CursorReadOnly != 0 {
			ends = mysqltest.EndsERR
		}
		for range 2 { // the second may leave definitions out
			check(fmt.Sprintf("flags %#x", f), r.execution(id, f, c), ends)
			fetched := 0
			for range 3 { // two rows at a time
				fetch := string(rune(ComStmtFetch)) + id + "\x02\x00\x00\x00"
				a := r.bound(fetch)
				a.walks(r.t, fmt.Sprintf("%s: fetch behind flags %#x: %s", r.name, f, c.SQL), fetch, r.caps)
				if a.last[0] == headerERR {
					break
				}
				fetched++
			}
			if opened := fetched > 0; opened != (c.Cursor && f&CursorReadOnly != 0) && several {
				r.t.Errorf("%s: flags %#x: %s: opened a cursor: got %v, want %v", r.name, f, c.SQL, opened, !opened)
			} else if opened {
				cursors++
			}
			executed++
		}
		reset := string(rune(ComStmtReset)) + id
		a := r.bound(reset)
		a.walks(r.t, r.name+": reset: "+c.SQL, reset, r.caps)
	}
	if _, err := r.conn.Write(packetBytes(string(rune(ComStmtClose)) + id)); err != nil {
		r.t.Fatal(err)
	}
	return executed, cursors
}

func packetBytes(payload string) []byte {
	b, _ := AppendPacket(nil, []byte(payload), 0)
	return b
}

// Checklist 15.
// Checklist 18.
// Checklist 19.
// Checklist 20.
func TestWhatEndsTheAnswerToARoutine(t *testing.T) {
	s := mysqltest.Shared(t)
	schema := s.Schema(t)
	create, calls := s.Routines()
	s.Exec(t, append([]string{"USE " + schema}, create...)...)
	// Flags that change the packets of an answer are tried in all sets. The others change contents
	// only and are tried together.
	framing := []Capability{DeprecateEOF, MultiStatements | MultiResults, PSMultiResults, OptionalMetadata}
	rest := SessionTrack | QueryAttributes
	if s.IsMariaDB() {
		framing[3], rest = CacheMetadata, SessionTrack|ExtendedMetadata|Progress
	}
	framing = append(framing, rest)
	for set := range 1 << len(framing) {
		caps := LongFlag | Transactions
		for bit, flags := range framing {
			if set&(1<<bit) != 0 {
				caps |= flags
			}
		}
		r := &routineRun{newRecorder(t, s, schema, caps), fmt.Sprintf("capabilities %#x", uint64(caps))}
		for _, sql := range []string{"SET @a = 1, @b = 2", "SET SESSION resultset_metadata = NONE"} {
			if r.bound(r.text(sql)).last[0] != headerOK && (caps.Has(OptionalMetadata) || strings.Contains(sql, "@")) {
				t.Fatalf("%s: %s failed", r.name, sql)
			}
		}
		executed, cursors, mode := 0, 0, ""
		for i, c := range calls {
			if c.Mode != mode {
				if a := r.bound(r.text("SET sql_mode = '" + c.Mode + "'")); a.last[0] != headerOK {
					t.Fatalf("%s: SET sql_mode: %q", r.name, a.last)
				}
				mode = c.Mode
			}
			flags := []byte{0, CursorReadOnly}
			if set == i%(1<<len(framing)) { // so each call comes with all cursor flags
				flags = []byte{0, 1, 2, 3, 4, 5, 6, 7}
			}
			n, opened := r.run(c, flags)
			executed, cursors = executed+n, cursors+opened
		}
		if executed < 4*len(calls)*3/4 || cursors == 0 {
			t.Errorf("%s: %d executions of %d calls, %d with cursors", r.name, executed, len(calls), cursors)
		}
		r.conn.Close()
	}
}
