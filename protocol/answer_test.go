package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The answers here are built byte by byte, without this package's encoder. Otherwise a mistake that
// both share would go unseen.

// answerBytes joins payloads to packets numbered from 1. It splits a payload of 16 MB and more as
// servers do.
func answerBytes(payloads ...[]byte) []byte {
	var b []byte
	num := byte(1)
	for _, p := range payloads {
		for {
			n := min(len(p), 0xffffff)
			b = append(b, byte(n), byte(n>>8), byte(n>>16), num)
			b = append(b, p[:n]...)
			p = p[n:]
			num++
			if n < 0xffffff {
				break
			}
		}
	}
	return b
}

func raw(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// okBytes is an OK with small numbers; header 0xfe makes it stand for an EOF.
func okBytes(header byte, status, warnings int, info string) []byte {
	return append([]byte{header, 3, 7, byte(status), byte(status >> 8), byte(warnings), byte(warnings >> 8)}, info...)
}

func eofBytes(status, warnings int) []byte {
	return []byte{0xfe, byte(warnings), byte(warnings >> 8), byte(status), byte(status >> 8)}
}

func errBytes(code int) []byte {
	return append([]byte{0xff, byte(code), byte(code >> 8)}, "#42S02something is missing"...)
}

func columnBytes(name string) []byte {
	return raw("\x03def", "\x00\x00\x00", string(rune(len(name))), name, "\x00\x0c\x21\x00\x40\x00\x00\x00\xfd\x00\x00\x00\x00\x00")
}

func columnsBytes(n int) [][]byte {
	var list [][]byte
	for i := range n {
		list = append(list, columnBytes(fmt.Sprintf("c%d", i)))
	}
	return list
}

// walked is the complete outcome of a walk.
type walked struct {
	Accepted  int
	Event     Event
	Files     []int // where the server asked for a file
	Status    Status
	Warnings  uint16
	ErrCode   uint16
	Rows      bool
	PacketNum uint8
}

func (w walked) equal(v walked) bool {
	files := slices.Equal(w.Files, v.Files)
	w.Files, v.Files = nil, nil
	return files && fmt.Sprint(w) == fmt.Sprint(v)
}

// walkIn walks over b in pieces that end at cuts, and the rest. Bytes that a step does not accept
// come again. It sends a file that is asked for.
func walkIn(t testing.TB, shape Shape, caps Capability, b []byte, cuts ...int) walked {
	t.Helper()
	var a Answer
	a.Begin(shape, caps)
	w := walked{}
	for i := 0; i <= len(cuts); i++ {
		have := len(b)
		if i < len(cuts) {
			have = cuts[i]
		}
		if have < w.Accepted {
			t.Fatalf("cut at %d: got %d bytes accepted, want no more than there were", have, w.Accepted)
		}
		for {
			n, ev := a.Walk(b[w.Accepted:have])
			if n < 0 || n > have-w.Accepted {
				t.Fatalf("accepted %d of %d bytes", n, have-w.Accepted)
			}
			w.Accepted += n
			w.Event = ev
			if ev != WantsFile {
				break
			}
			w.Files = append(w.Files, w.Accepted)
			if n, ev := a.Walk(b[w.Accepted:have]); n != 0 || ev != WantsFile {
				t.Fatalf("before the file was sent: got %d bytes and event %d, want none and WantsFile", n, ev)
			}
			a.FileSent()
		}
		if w.Event == Done {
			if n, ev := a.Walk(b[w.Accepted:]); n != 0 || ev != Done {
				t.Fatalf("behind the end: got %d bytes and event %d, want none and Done", n, ev)
			}
		}
		if w.Event != NeedMore {
			break
		}
	}
	w.Status, w.Warnings, w.ErrCode, w.Rows, w.PacketNum = a.Status, a.Warnings, a.ErrCode, a.Rows, a.PacketNum
	return w
}

// everyByte is the cuts that feed n bytes one by one.
func everyByte(n int) []int {
	cuts := make([]int, n)
	for i := range cuts {
		cuts[i] = i
	}
	return cuts
}

// checkSplits feeds b whole, byte by byte and cut at every offset.
func checkSplits(t *testing.T, shape Shape, caps Capability, b []byte, want walked) {
	t.Helper()
	check := func(how string, cuts ...int) bool {
		got := walkIn(t, shape, caps, b, cuts...)
		if !got.equal(want) {
			t.Errorf("%s: got %+v, want %+v", how, got, want)
			return false
		}
		return true
	}
	if !check("whole") {
		return
	}
	if len(b) > 20_000 { // byte by byte would take too long: only around the packets' ends
		for at := 0; at < len(b); {
			size := 0
			if len(b)-at >= HeaderSize {
				size = PayloadLen(b[at:])
			}
			for d := -3; d < 30; d++ {
				if cut := at + d; cut >= 0 && cut <= len(b) && !check(fmt.Sprintf("cut at %d", cut), cut) {
					return
				}
			}
			at += HeaderSize + size
		}
		var cuts []int
		for at := 0; at < len(b); at += 1 + rand.IntN(4096) {
			cuts = append(cuts, at)
		}
		check("in small pieces", cuts...)
		return
	}
	if !check("byte by byte", everyByte(len(b))...) {
		return
	}
	for cut := range len(b) + 1 {
		if !check(fmt.Sprintf("cut at %d", cut), cut) {
			return
		}
	}
}

const (
	modern  = Protocol41 | DeprecateEOF
	classic = Protocol41
)

// answerCase is an answer and the expected outcome of two walks: over it, and over the next answer,
// which follows at once. Accepted is its length.
type answerCase struct {
	name  string
	shape Shape
	caps  Capability
	bytes []byte
	want  walked
}

func answerCases() []answerCase {
	const auto = 2
	def := columnBytes("c")
	var cases []answerCase
	add := func(name string, shape Shape, caps Capability, want walked, payloads ...[]byte) {
		cases = append(cases, answerCase{name, shape, caps, answerBytes(payloads...), want})
	}
	done := func(num uint8, status Status, warnings uint16) walked {
		return walked{Event: Done, PacketNum: num, Status: status, Warnings: warnings}
	}
	rows := func(num uint8, status Status, warnings uint16) walked {
		w := done(num, status, warnings)
		w.Rows = true
		return w
	}
	failed := func(num uint8, code uint16) walked {
		return walked{Event: Done, PacketNum: num, ErrCode: code}
	}
	bad := walked{Event: Malformed}

	add("no answer", ShapeNone, classic, walked{Event: Done})

	// One packet.
	add("OK", ShapeOne, classic, done(1, auto, 5), okBytes(0, auto, 5, ""))
	add("ERR", ShapeOne, classic, failed(1, 1146), errBytes(1146))
	add("EOF of SET_OPTION", ShapeOne, classic, done(1, auto, 1), eofBytes(auto, 1))
	add("EOF of SET_OPTION as OK", ShapeOne, modern, done(1, auto, 1), okBytes(0xfe, auto, 1, ""))
	add("statistics", ShapeOne, classic, walked{Event: Done, PacketNum: 1}, raw("Uptime: 17  Threads: 1  Questions: 6"))
	add("empty string", ShapeOne, modern, walked{Event: Done, PacketNum: 1}, nil)
	add("ERR cut short", ShapeOne, modern, bad, []byte{0xff, 1})
	add("EOF cut short", ShapeOne, classic, bad, []byte{0xfe, 1, 0})

	cases = append(cases, metadataCases()...)
	for _, caps := range []Capability{classic, modern} {
		kind := "classic "
		end, next := eofBytes, 1 // packet numbers behind the definitions are one higher with EOF
		if caps == modern {
			kind, next = "modern ", 0
			end = func(status, warnings int) []byte { return okBytes(0xfe, status, warnings, "") }
		}
		// set returns a result set of n columns, including its last packet.
		set := func(n int, last []byte, rows ...[]byte) [][]byte {
			count := []byte{byte(n)}
			if n > 250 {
				count = []byte{0xfc, byte(n), byte(n >> 8)}
			}
			list := append([][]byte{count}, columnsBytes(n)...)
			if caps == classic {
				list = append(list, eofBytes(auto, 0))
			}
			return append(append(list, rows...), last)
		}
		add(kind+"OK", ShapeResult, caps, done(1, auto, 2), okBytes(0, auto, 2, "\x05Rows "))
		add(kind+"OK with long integers", ShapeResult, caps, done(1, auto, 258), raw(
			"\x00", "\xfe\x01\x02\x03\x04\x05\x06\x07\x08", "\xfe\x01\x02\x03\x04\x05\x06\x07\x08", "\x02\x00\x02\x01", "info"))
		add(kind+"ERR", ShapeResult, caps, failed(1, 1064), errBytes(1064))
		add(kind+"no rows", ShapeResult, caps, rows(uint8(3+next), auto, 1), set(1, end(auto, 1))...)
		add(kind+"rows", ShapeResult, caps, rows(uint8(6+next), auto, 0),
			set(2, end(auto, 0), raw("\x011", "\x012"), raw("\x00", "\xfb"))...)
		add(kind+"rows that begin with 00, FB, FC and FD", ShapeResult, caps, rows(uint8(7+next), auto, 0), set(1, end(auto, 0),
			raw("\x00"), raw("\xfb"), raw("\xfc\x05\x00hello"), raw("\xfd\x05\x00\x00hello"))...)
		add(kind+"a row of no bytes", ShapeResult, caps, rows(uint8(4+next), auto, 0), set(1, end(auto, 0), nil)...)
		add(kind+"binary rows", ShapeResult, caps, rows(uint8(5+next), auto, 0), set(1, end(auto, 0),
			raw("\x00\x00\x07\x00\x00\x00"), raw("\x00\x04"))...)
		add(kind+"300 columns", ShapeResult, caps, rows(uint8((303+next)%256), auto, 0),
			set(300, end(auto, 0), bytes.Repeat([]byte{0xfb}, 300))...)
		add(kind+"ERR behind rows", ShapeResult, caps, walked{Event: Done, PacketNum: uint8(4 + next), ErrCode: 1242, Rows: true, Status: []Status{auto, 0}[1-next]},
			set(1, errBytes(1242), raw("\x011"))...)
		add(kind+"ERR in place of a definition", ShapeResult, caps, walked{Event: Done, PacketNum: 3, ErrCode: 1105, Rows: true},
			[]byte{2}, def, errBytes(1105))

		// More than one.
		more := auto | 8
		add(kind+"OK, rows, OK", ShapeResult, caps, rows(uint8(6+next), auto, 4), slices.Concat([][]byte{okBytes(0, more, 1, "")},
			set(1, end(more, 0), raw("\x011")), [][]byte{okBytes(0, auto, 4, "")})...)
		add(kind+"rows, ERR", ShapeResult, caps, walked{Event: Done, PacketNum: uint8(5 + next), ErrCode: 1064, Rows: true, Status: Status(more)},
			slices.Concat(set(1, end(more, 0), raw("\x011")), [][]byte{errBytes(1064)})...)
		add(kind+"terminator with MORE_RESULTS, then nothing", ShapeResult, caps,
			walked{Event: NeedMore, PacketNum: uint8(4 + next), Rows: true, Status: Status(more)}, set(1, end(more, 0), raw("\x011"))...)

		if caps == classic { // as MySQL sends a procedure's OUT parameters
			add(kind+"OUT parameters and the procedure's OK", ShapeResult, caps, rows(6, auto, 0), []byte{1}, def,
				eofBytes(more|0x1000, 0), raw("\x00\x00\x07"), eofBytes(auto, 0), okBytes(0, auto, 0, ""))
		}
		// A cursor: no rows behind the definitions.
		cursor := auto | 0x40
		add(kind+"a cursor", ShapeCursor, caps, rows(3, Status(cursor), 0), []byte{1}, def, end(cursor, 0))
		add(kind+"no cursor, though one was asked for", ShapeCursor, caps, rows(uint8(4+next), auto, 1), set(1, end(auto, 1), raw("\x00\x00\x07"))...)
		if caps == classic { // a cursor that a routine has opened: its flag stands in all that follows
			routine := [][]byte{{1}, def, eofBytes(cursor|8, 0), raw("\x00\x00\x07"), eofBytes(cursor|8, 0), okBytes(0, cursor, 0, "")}
			add("a cursor inside of a routine", ShapeResult, caps, rows(6, Status(cursor), 0), routine...)
			add("a cursor inside of a routine, where one was asked for", ShapeCursor, caps, rows(6, Status(cursor), 0), routine...)
			add("a cursor inside of a function", ShapeResult, caps, rows(5, Status(cursor), 0), []byte{1}, def, eofBytes(cursor, 0), raw("\x017"), eofBytes(cursor, 0))
		}

		// Rows alone, and definitions alone.
		add(kind+"FETCH", ShapeRows, caps, done(3, Status(cursor), 0), raw("\x00\x00\x07"), raw("\x00\x00\x08"), end(cursor, 0))
		add(kind+"FETCH of the last row", ShapeRows, caps, done(1, auto|0x80, 0), end(auto|0x80, 0))
		add(kind+"FETCH with MORE_RESULTS", ShapeRows, caps, done(1, Status(more), 0), end(more, 0))
		add(kind+"FETCH fails", ShapeRows, caps, failed(1, 1421), errBytes(1421))
		add(kind+"FIELD_LIST", ShapeFields, caps, done(3, auto, 0), columnBytes("a"), columnBytes("b"), end(auto, 0))
		add(kind+"FIELD_LIST fails", ShapeFields, caps, failed(1, 1146), errBytes(1146))

		// LOAD DATA LOCAL: the file goes between the packets, its numbers are skipped.
		file := answerBytes(raw("\xfbfile.csv"))
		load := append(slices.Clone(file), answerBytes(okBytes(0, auto, 9, "\x0aRecords: 1"))...)
		cases = append(cases, answerCase{
			kind + "LOCAL INFILE", ShapeResult, caps, load,
			walked{Event: Done, Files: []int{len(file)}, PacketNum: 1, Status: auto, Warnings: 9},
		})
		load = append(slices.Clone(file), answerBytes(errBytes(1366))...)
		cases = append(cases, answerCase{
			kind + "LOCAL INFILE that fails", ShapeResult, caps, load,
			walked{Event: Done, Files: []int{len(file)}, PacketNum: 1, ErrCode: 1366},
		})
		load = slices.Concat(answerBytes(okBytes(0, more, 0, "")), file, answerBytes(okBytes(0, more, 0, "")), file, answerBytes(okBytes(0, auto, 0, "")))
		at := len(answerBytes(okBytes(0, 0, 0, ""))) + len(file)
		cases = append(cases, answerCase{
			kind + "LOCAL INFILE twice between others", ShapeResult, caps, load,
			walked{Event: Done, Files: []int{at, 2 * at}, PacketNum: 1, Status: auto},
		})

		// Bytes that are no answer: none of them may be accepted.
		for name, payload := range map[string][]byte{
			"an empty first packet": nil, "OK cut short": {0, 0, 0, 2, 0, 0}, "ERR cut short": {0xff, 1}, "no columns": {0xfc, 0, 0},
			"a column count cut short": {0xfc, 1}, "a column count and more": append([]byte{1}, "and more bytes"...), "EOF first": eofBytes(2, 0),
			"an OK whose integer is NULL": {0, 0xfb, 0, 2, 0, 0, 0},
		} {
			add(kind+name, ShapeResult, caps, bad, payload)
		}
		for _, shape := range []Shape{ShapeUnknown, ShapePrepare, ShapePrepare + 1} {
			add(fmt.Sprint(kind, "shape ", shape, " is not walked"), shape, caps, bad, okBytes(0, auto, 0, ""))
		}
	}
	add("modern terminator cut short", ShapeRows, modern, bad, []byte{0xfe, 0, 0, 2, 0})
	add("classic terminator cut short", ShapeRows, classic, bad, []byte{0xfe, 0, 0})
	add("modern terminator with state changes", ShapeRows, modern, done(1, auto|0x4000, 0), okBytes(0xfe, auto|0x4000, 0, "\x00\x20"+string(make([]byte, 32))))
	add("an empty definition", ShapeResult, modern, walked{Event: Malformed, Accepted: 5, Rows: true, PacketNum: 1}, []byte{1}, nil)
	add("no EOF behind definitions", ShapeResult, classic, walked{Event: Malformed, Accepted: 5 + HeaderSize + len(def), Rows: true, PacketNum: 2},
		[]byte{1}, def, raw("\x011"))

	for i := range cases {
		if c := &cases[i]; c.want.Event != Malformed {
			c.want.Accepted = len(c.bytes)
		}
	}
	return cases
}

// Checklist 15.
// Checklist 16.
// Checklist 17.
// Checklist 18.
// Checklist 19.
func TestAWalkEndsWhereTheAnswerEnds(t *testing.T) {
	for _, c := range answerCases() {
		t.Run(c.name, func(t *testing.T) {
			checkSplits(t, c.shape, c.caps, c.bytes, c.want)
			if got := referenceWalk(c.shape, c.caps, c.bytes); !got.equal(c.want) {
				t.Errorf("reference: got %+v, want %+v", got, c.want)
			}
			if c.want.Event == NeedMore {
				return
			}
			// The answer to the next command is never accepted, however it begins.
			for _, next := range [][]byte{answerBytes(okBytes(0, 2, 0, "")), answerBytes(errBytes(1064)), answerBytes(eofBytes(2, 0)), {1, 0, 0}, make([]byte, 64)} {
				checkSplits(t, c.shape, c.caps, slices.Concat(c.bytes, next), c.want)
			}
		})
	}
}

// An answer is not over before its last byte. After an early Done, the answer to the next
// command would begin inside this one.
//
// Checklist 16.
func TestAnAnswerIsNotDoneBeforeItsLastByte(t *testing.T) {
	for _, c := range answerCases() {
		if c.want.Event != Done || c.shape == ShapeNone {
			continue
		}
		for n := range len(c.bytes) {
			if got := walkIn(t, c.shape, c.caps, c.bytes[:n]); got.Event != NeedMore {
				t.Errorf("%s: %d of %d bytes: got event %d, want NeedMore", c.name, n, len(c.bytes), got.Event)
			}
		}
	}
}

// A payload of 16 MB and more continues in further packets. Their first bytes mean nothing.
//
// Checklist 12.
func TestPacketsThatAreContinuedAreWalkedOver(t *testing.T) {
	const fragment = 0xffffff
	long := func(prefix string, size int, fill byte) []byte {
		b := bytes.Repeat([]byte{fill}, size)
		copy(b, prefix)
		return b
	}
	for _, caps := range []Capability{classic, modern} {
		end := eofBytes(2, 0)
		if caps == modern {
			end = okBytes(0xfe, 2, 0, "")
		}
		for _, c := range []struct {
			name    string
			row     []byte
			packets uint8
		}{
			{"first column of 16 MB, FE and length FFFFFF", long("\xfe\x00\x00\x00\x01\x00\x00\x00\x00", 9+1<<24, 'x'), 2},
			{"exactly FFFFFF and an empty packet", long("\xfd\xfb\xff\xff", fragment, 'x'), 2},
			{"exactly twice FFFFFF and an empty packet", long("\xfe\xf5\xff\xff\x01\x00\x00\x00\x00", 2*fragment, 'x'), 3},
			{"one less than FFFFFF", long("\xfd\xfa\xff\xff", fragment-1, 'x'), 1},
			{"a continuation that begins like ERR", long("\xfd\xfb\xff\xff", fragment+20, 0xff), 2},
			{"a continuation that begins like EOF", long("\xfd\xfb\xff\xff", fragment+5, 0xfe), 2},
		} {
			t.Run(fmt.Sprintf("%v/%s", caps == modern, c.name), func(t *testing.T) {
				b := answerBytes(raw("\x01\x01"), c.row, raw("\x01\x02"), end)
				want := walked{Event: Done, Accepted: len(b), PacketNum: 3 + c.packets, Status: 2}
				b = append(b, answerBytes(okBytes(0, 0, 0, ""))...)
				checkSplits(t, ShapeRows, caps, b, want)
				if got := referenceWalk(ShapeRows, caps, b); !got.equal(want) {
					t.Errorf("reference: got %+v, want %+v", got, want)
				}
			})
		}
	}
	// The only packet of an answer may be continued as well.
	b := answerBytes(long("Uptime: ", fragment, 'x'))
	checkSplits(t, ShapeOne, modern, append(b, 1, 0, 0, 1), walked{Event: Done, Accepted: len(b), PacketNum: 2})
}

func TestAStatusLastsFromAnswerToAnswer(t *testing.T) {
	var a Answer
	a.Begin(ShapeResult, modern)
	if _, ev := a.Walk(answerBytes(okBytes(0, 3, 0, ""))); ev != Done || a.Status != InTransaction|Autocommit {
		t.Fatalf("got event %d and status %d, want Done and 3", ev, a.Status)
	}
	a.Begin(ShapeResult, modern)
	if _, ev := a.Walk(answerBytes(errBytes(1064))); ev != Done || a.Status != InTransaction|Autocommit || a.ErrCode != 1064 {
		t.Fatalf("ERR: got event %d, status %d and code %d, want Done, 3 and 1064", ev, a.Status, a.ErrCode)
	}
	a.Begin(ShapeResult, modern)
	if a.ErrCode != 0 || a.Warnings != 0 || a.Rows {
		t.Errorf("a new answer keeps what the last one said: %+v", a)
	}
}

func TestAWalkAllocatesNothing(t *testing.T) {
	payloads := append([][]byte{{1}}, columnBytes("c"))
	for range 1000 {
		payloads = append(payloads, raw("\x0asome value"))
	}
	b := answerBytes(append(payloads, okBytes(0xfe, 2, 0, ""))...)
	var a Answer
	if got := testing.AllocsPerRun(100, func() {
		a.Begin(ShapeResult, modern)
		if n, ev := a.Walk(b); n != len(b) || ev != Done {
			t.Fatalf("got %d, %d, want %d and Done", n, ev, len(b))
		}
	}); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

// metadataCases are answers whose first packet says whether definitions follow, and answers with
// progress reports.
func metadataCases() (cases []answerCase) {
	const auto, cursor = 2, 2 | 0x40
	progress := []byte("\xff\xff\xff\x01\x01\x02\x10\x27\x00\x0ecopy to tmp tab")
	for _, flag := range []Capability{OptionalMetadata, CacheMetadata} {
		add := func(name string, caps Capability, want walked, payloads ...[]byte) {
			cases = append(cases, answerCase{fmt.Sprintf("%s, flags %x", name, uint64(caps)), ShapeResult, caps, answerBytes(payloads...), want})
		}
		rows := func(num uint8, status Status) walked {
			return walked{Event: Done, PacketNum: num, Status: status, Rows: true}
		}
		c, m := classic|flag, modern|flag
		row, eof, ok := raw("\x017"), eofBytes(auto, 0), okBytes(0xfe, auto, 0, "")
		add("definitions", c, rows(5, auto), raw("\x01\x01"), columnBytes("c"), eof, row, eof)
		add("definitions", m, rows(4, auto), raw("\x01\x01"), columnBytes("c"), row, ok)
		add("no definitions", c, rows(4, auto), raw("\x01\x00"), eof, row, eof)
		add("no definitions", m, rows(3, auto), raw("\x01\x00"), row, ok)
		add("no definitions and no row", m, rows(2, auto), raw("\x02\x00"), ok)
		add("no definitions of 300 columns", m, rows(2, auto), raw("\xfc\x2c\x01\x00"), ok)
		add("a cursor inside of a function, without definitions", c, rows(4, cursor), raw("\x01\x00"), eofBytes(cursor, 0), row, eofBytes(cursor, 0))
		for flags, end := range map[Capability][]byte{c: eofBytes(cursor, 0), m: okBytes(0xfe, cursor, 0, "")} {
			add("a cursor without definitions", flags, rows(2, cursor), raw("\x01\x00"), end)
			cases[len(cases)-1].shape = ShapeCursor
		}
		add("no definitions, then more", m, rows(6, auto), raw("\x01\x00"), row, okBytes(0xfe, auto|8, 0, ""), raw("\x01\x00"), row, ok)
		add("ERR in place of rows", c, walked{Event: Done, PacketNum: 2, ErrCode: 1317, Rows: true}, raw("\x01\x00"), errBytes(1317))
		for _, head := range []string{"\x01", "\x01\x01\x01", "\xfc\x2c\x01", "\x01\x00\x00"} {
			add(fmt.Sprintf("a head of %x", head), m, walked{Event: Malformed}, raw(head))
		}
		if flag == CacheMetadata {
			p := m | Progress
			add("progress before an OK", p, walked{Event: Done, PacketNum: 3, Status: auto}, progress, progress, okBytes(0, auto, 0, ""))
			add("progress before an ERR", p, walked{Event: Done, PacketNum: 2, ErrCode: 1062}, progress, errBytes(1062))
			add("progress everywhere", p, rows(8, auto), progress, raw("\x01\x01"), progress, columnBytes("c"), progress, row, progress, ok)
			add("progress everywhere", c|Progress, rows(10, auto), progress, raw("\x01\x01"), progress, columnBytes("c"), progress, eof, progress, row, progress, eof)
			add("an ERR of that number", p, walked{Event: Done, PacketNum: 1, ErrCode: 0xffff}, errBytes(0xffff))
			add("a report that nobody asked for", m, walked{Event: Done, PacketNum: 1, ErrCode: 0xffff}, progress)
		}
	}
	return cases
}

func TestAnExecutionsFlagsSayWhetherACursorEndsItsAnswer(t *testing.T) {
	for payload, want := range map[string]Shape{
		"": ShapeUnknown, "\x0e": ShapeOne, "\x03\x01\x01\x01\x01\x01\x01": ShapeResult, "\x17": ShapeResult, "\x17\x01\x01\x01\x01": ShapeResult,
		"\x17\x01\x01\x01\x01\x00": ShapeResult, "\x17\x00\x00\x00\x00\x01": ShapeCursor, "\x17\x01\x00\x00\x00\x09\x01": ShapeCursor,
		"\x17\x01\x00\x00\x00\x06": ShapeResult, "\xfa\x01\x00\x00\x00\x01\x00": ShapeResult, "\x1c\x01\x00\x00\x00\x01\x00\x00\x00": ShapeRows,
	} {
		if got := AnswerTo([]byte(payload)); got != want {
			t.Errorf("%x: got shape %d, want %d", payload, got, want)
		}
	}
}

// Checklist 13.
// Checklist 14.
func TestEveryCommandOfTheCommandPhaseHasAShape(t *testing.T) {
	want := map[Command]Shape{
		ComQuit: ShapeNone, ComStmtClose: ShapeNone, ComStmtLongData: ShapeNone,
		ComInitDB: ShapeOne, ComPing: ShapeOne, ComStatistics: ShapeOne, ComSetOption: ShapeOne, ComResetConn: ShapeOne,
		ComStmtReset: ShapeOne, ComDebug: ShapeOne, ComProcessKill: ShapeOne, ComRefresh: ShapeOne, ComShutdown: ShapeOne,
		ComCreateDB: ShapeOne, ComDropDB: ShapeOne, ComRegisterSlave: ShapeOne,
		ComQuery: ShapeResult, ComStmtExecute: ShapeResult, ComStmtBulkExecute: ShapeResult, ComProcessInfo: ShapeResult,
		ComStmtFetch: ShapeRows, ComFieldList: ShapeFields, ComStmtPrepare: ShapePrepare,
	}
	for c := range 256 {
		if got := Command(c).AnswerShape(); got != want[Command(c)] {
			t.Errorf("command %#x: got shape %d, want %d", c, got, want[Command(c)])
		}
	}
}

func BenchmarkWalk(b *testing.B) {
	for _, size := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			row := append(binary.LittleEndian.AppendUint16([]byte{0xfc}, uint16(size)), make([]byte, size)...)
			var payloads [][]byte
			for range BufferSize / (size + 7) {
				payloads = append(payloads, row)
			}
			chunk := answerBytes(payloads...)
			var a Answer
			a.Begin(ShapeRows, modern)
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if n, ev := a.Walk(chunk); n != len(chunk) || ev != NeedMore {
					b.Fatalf("got %d, %d", n, ev)
				}
			}
		})
	}
}

func TestAnAnswerTellsTheLastInsertIDOfItsOKs(t *testing.T) {
	more := MoreResults
	for _, test := range []struct {
		oks  []OK
		want uint64
	}{
		{[]OK{{}}, 0},
		{[]OK{{AffectedRows: 3, InsertID: 7}}, 7},
		{[]OK{{InsertID: 1<<64 - 1}}, 1<<64 - 1},
		{[]OK{{Status: more, InsertID: 300}, {Status: more, InsertID: 70_000}, {AffectedRows: 1}}, 70_000},
	} {
		var b []byte
		for i, ok := range test.oks {
			b = AppendOK(b, uint8(i+1), ok)
		}
		var a Answer
		for range 2 { // the next answer begins anew
			a.Begin(ShapeResult, 0)
			if n, ev := a.Walk(b); n != len(b) || ev != Done || a.InsertID != test.want {
				t.Errorf("%+v: insert id %d after %d bytes and %v, want %d", test.oks, a.InsertID, n, ev, test.want)
			}
		}
		a.Begin(ShapeResult, 0)
		if a.InsertID != 0 {
			t.Errorf("%+v: the insert id stays for the next answer", test.oks)
		}
	}
}
