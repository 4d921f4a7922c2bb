package protocol

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// attributesOf encodes attributes as they stand before a text. A value of nil is NULL.
func attributesOf(attrs []attributeOf) []byte {
	b := AppendLenEncInt(nil, uint64(len(attrs)))
	b = append(b, 1)
	if len(attrs) == 0 {
		return b
	}
	nulls := make([]byte, (len(attrs)+7)/8)
	for i, a := range attrs {
		if a.value == nil {
			nulls[i/8] |= 1 << (i % 8)
		}
	}
	b = append(append(b, nulls...), 1)
	for _, a := range attrs {
		b = a.Append(b, true)
	}
	for _, a := range attrs {
		b = append(b, a.value...)
	}
	return b
}

type attributeOf struct {
	Parameter
	value []byte
}

func attr(name string, typ uint8, value string) attributeOf {
	return attributeOf{Parameter{uint16(typ), []byte(name)}, []byte(value)}
}

func attributeCases() map[string][]byte {
	long := strings.Repeat("v", 300)
	many := make([]attributeOf, 300)
	for i := range many {
		many[i] = attr("n", mysql.MYSQL_TYPE_TINY, "\x05")
	}
	return map[string][]byte{
		"none":                      []byte(NoAttributes),
		"none, counted in 9 bytes":  []byte("\xfe\x00\x00\x00\x00\x00\x00\x00\x00\x01"),
		"a string":                  attributesOf([]attributeOf{attr("trace", mysql.MYSQL_TYPE_STRING, "\x03abc")}),
		"a string of SQL":           attributesOf([]attributeOf{attr("SELECT 1", mysql.MYSQL_TYPE_VAR_STRING, "\x10NEXTVAL('other')")}),
		"a long string":             attributesOf([]attributeOf{attr(long, mysql.MYSQL_TYPE_BLOB, "\xfc\x2c\x01"+long)}),
		"no name":                   attributesOf([]attributeOf{attr("", mysql.MYSQL_TYPE_STRING, "\x00")}),
		"NULL":                      attributesOf([]attributeOf{{Parameter{uint16(mysql.MYSQL_TYPE_NULL), []byte("n")}, nil}, attr("m", mysql.MYSQL_TYPE_TINY, "\x01")}),
		"an unsigned integer":       attributesOf([]attributeOf{{Parameter{0x8008, []byte("n")}, []byte("\x01\x02\x03\x04\x05\x06\x07\x08")}}),
		"numbers, times and others": attributesOf([]attributeOf{attr("a", mysql.MYSQL_TYPE_SHORT, "\x01\x02"), attr("b", mysql.MYSQL_TYPE_FLOAT, "\x01\x02\x03\x04"), attr("c", mysql.MYSQL_TYPE_DATETIME, "\x04\xe0\x07\x01\x02"), attr("d", mysql.MYSQL_TYPE_TIME, "\x00"), attr("e", mysql.MYSQL_TYPE_NEWDECIMAL, "\x031.5")}),
		"300 of them":               attributesOf(many),
	}
}

// Checklist 4.
func TestATextBeginsBehindItsAttributes(t *testing.T) {
	for name, attributes := range attributeCases() {
		for _, text := range []string{"", "SELECT NEXTVAL('photos')", "\x00\x01"} {
			if n, ok := CutAttributes(append(slices.Clip(attributes), text...)); !ok || n != len(attributes) {
				t.Errorf("%s before %q: got %d, %v, want %d", name, text, n, ok, len(attributes))
			}
		}
		for n := range len(attributes) { // no prefix is taken for something else
			if got, ok := CutAttributes(attributes[:n]); ok {
				t.Errorf("%s cut at %d of %d: got %d, want none", name, n, len(attributes), got)
			}
		}
	}
}

func TestAttributesThatAServerReadsInAnotherWayAreNotGuessedAt(t *testing.T) {
	for name, b := range map[string]string{
		"nothing":                 "",
		"no attributes at all":    "SELECT 1",
		"no set":                  "\x00\x00SELECT 1",
		"two sets":                "\x01\x02\x00\x01\xfe\x00\x01a\x03xyzSELECT 1",
		"not bound":               "\x01\x01\x00\x00\xfe\x00\x01a\x03xyzSELECT 1",
		"NULL for a count":        "\xfb\x01SELECT 1",
		"no count":                "\xff\x01SELECT 1",
		"more than there can be":  "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01SELECT 1",
		"a value beyond the end":  "\x01\x01\x00\x01\xfe\x00\x01a\x63xyzSELECT 1",
		"a name beyond the end":   "\x01\x01\x00\x01\xfe\x00\x63xyzSELECT 1",
		"a NULL that is not null": "\x01\x01\x00\x01\x06\x00\x01aSELECT 1",
		"a BOOL":                  "\x01\x01\x00\x01\xf4\x00\x01a\x01SELECT 1",
		"a YEAR":                  "\x01\x01\x00\x01\x0d\x00\x01a\x03xyzSELECT 1",
		"an INT24":                "\x01\x01\x00\x01\x09\x00\x01a\x03xyzSELECT 1",
	} {
		if n, ok := CutAttributes([]byte(b)); ok {
			t.Errorf("%s: got %d bytes, want none", name, n)
		}
	}
}

func TestAnIntegerIsReadAsItsTypeSays(t *testing.T) {
	const unsigned = 0x8000
	for _, c := range []struct {
		name     string
		typ      uint16
		value    string
		want     uint64
		negative bool
		ok       bool
	}{
		{"TINYINT", uint16(mysql.MYSQL_TYPE_TINY), "\x05", 5, false, true},
		{"TINYINT below 0", uint16(mysql.MYSQL_TYPE_TINY), "\xff", 0, true, true},
		{"TINYINT UNSIGNED", uint16(mysql.MYSQL_TYPE_TINY) | unsigned, "\xff", 255, false, true},
		{"SMALLINT", uint16(mysql.MYSQL_TYPE_SHORT), "\x01\x02", 0x201, false, true},
		{"SMALLINT below 0", uint16(mysql.MYSQL_TYPE_SHORT), "\x00\x80", 0, true, true},
		{"SMALLINT UNSIGNED", uint16(mysql.MYSQL_TYPE_SHORT) | unsigned, "\x00\x80", 0x8000, false, true},
		{"YEAR", uint16(mysql.MYSQL_TYPE_YEAR), "\xea\x07", 2026, false, true},
		{"MEDIUMINT below 0", uint16(mysql.MYSQL_TYPE_INT24), "\xff\xff\xff\xff", 0, true, true},
		{"INT", uint16(mysql.MYSQL_TYPE_LONG), "\xff\xff\xff\x7f", 1<<31 - 1, false, true},
		{"INT below 0", uint16(mysql.MYSQL_TYPE_LONG), "\x00\x00\x00\x80", 0, true, true},
		{"INT UNSIGNED", uint16(mysql.MYSQL_TYPE_LONG) | unsigned, "\x00\x00\x00\x80", 1 << 31, false, true},
		{"BIGINT", uint16(mysql.MYSQL_TYPE_LONGLONG), "\x00\x00\x00\x00\x01\x00\x00\x00", 1 << 32, false, true},
		{"BIGINT below 0", uint16(mysql.MYSQL_TYPE_LONGLONG), "\xff\xff\xff\xff\xff\xff\xff\xff", 0, true, true},
		{"BIGINT UNSIGNED", uint16(mysql.MYSQL_TYPE_LONGLONG) | unsigned, "\xff\xff\xff\xff\xff\xff\xff\xff", 1<<64 - 1, false, true},
		{"0", uint16(mysql.MYSQL_TYPE_LONGLONG), "\x00\x00\x00\x00\x00\x00\x00\x00", 0, false, true},
		{"DOUBLE", uint16(mysql.MYSQL_TYPE_DOUBLE), "\x00\x00\x00\x00\x00\x00\xf0\x3f", 0, false, false},
		{"digits", uint16(mysql.MYSQL_TYPE_VAR_STRING), "\x015", 0, false, false},
		{"NULL", uint16(mysql.MYSQL_TYPE_NULL), "", 0, false, false},
	} {
		n, negative, ok := Parameter{Type: c.typ}.Integer([]byte(c.value))
		if negative {
			n = 0 // it is undefined
		}
		if n != c.want || negative != c.negative || ok != c.ok {
			t.Errorf("%s: got %d, negative %v, %v, want %d, %v, %v", c.name, n, negative, ok, c.want, c.negative, c.ok)
		}
	}
}

func TestCuttingAttributesTakesNoMemory(t *testing.T) {
	none, some := []byte(NoAttributes+"SELECT 1"), append(attributeCases()["an unsigned integer"], "SELECT 1"...)
	if got := testing.AllocsPerRun(100, func() { CutAttributes(none) }); got != 0 {
		t.Errorf("without attributes: got %v allocations, want 0", got)
	}
	if got := testing.AllocsPerRun(100, func() { CutAttributes(some) }); got != 0 {
		t.Errorf("with one: got %v allocations, want 0", got)
	}
}

// FuzzAttributes: the cut is where a server would cut, whatever follows.
func FuzzAttributes(f *testing.F) {
	for _, b := range attributeCases() {
		f.Add(b, "SELECT 1")
	}
	f.Add([]byte("SELECT 1"), "")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		n, ok := CutAttributes(b)
		if !ok {
			return
		}
		if n < len(NoAttributes) || n > len(b) {
			t.Fatalf("cut %d of %d bytes", n, len(b))
		}
		if again, ok := CutAttributes(append(slices.Clone(b[:n]), text...)); !ok || again != n {
			t.Errorf("before another text: got %d, %v, want %d", again, ok, n)
		}
		// Parameters built again from their parts are the same bytes.
		count, size, _ := ReadLenEncInt(b)
		if count == 0 || size != len(AppendLenEncInt(nil, count)) {
			return
		}
		head, values, ok := CutParameters(b[size+1:n], int(count), true)
		if !ok || !head.Rebound {
			t.Fatalf("the head of %x cannot be cut", b[:n])
		}
		again := append(slices.Clone(b[:size+1]), head.Nulls...)
		again = append(again, b[size+1+len(head.Nulls)])
		named := len(again)
		for types := head.Types; len(types) > 0; {
			var p Parameter
			if p, types, ok = CutParameter(types, true); !ok {
				t.Fatalf("a type of %x cannot be cut", head.Types)
			}
			again = p.Append(again, true)
		}
		if again = append(again, values...); len(again)-named == n-named && !bytes.Equal(again, b[:n]) {
			t.Errorf("got %x, want %x", again, b[:n])
		}
	})
}
