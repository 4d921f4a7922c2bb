package kill

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement"
)

func TestAWishIsSaidAsItCame(t *testing.T) {
	for _, c := range []struct {
		wish    Wish
		cmd     protocol.Command
		command string
		text    string
	}{
		{Wish{}, protocol.ComProcessKill, "\x07\x00\x00\x00", "KILL 7"},
		{WishOf(&statement.KillTarget{}), protocol.ComQuery, "KILL 7", "KILL 7"},
		{WishOf(&statement.KillTarget{Query: true}), protocol.ComQuery, "KILL QUERY 7", "KILL QUERY 7"},
		{WishOf(&statement.KillTarget{Hard: true, Query: true}), protocol.ComQuery, "KILL HARD QUERY 7", "KILL HARD QUERY 7"},
		{WishOf(&statement.KillTarget{Soft: true}), protocol.ComQuery, "KILL SOFT 7", "KILL SOFT 7"},
	} {
		if cmd, argument := c.wish.Command(7); cmd != c.cmd || argument != c.command {
			t.Errorf("%+v: got %v %q, want %v %q", c.wish, cmd, argument, c.cmd, c.command)
		}
		if got := c.wish.Text(7); got != c.text {
			t.Errorf("%+v: got %q, want %q", c.wish, got, c.text)
		}
	}
}

func TestAValueIsAConnectionIDOrNot(t *testing.T) {
	for text, want := range map[string]uint64{
		"7": 7, "7.000": 7, "2147483648": 1 << 31, "7.5": 0, "-7": 0, "seven": 0, "": 0,
	} {
		if got := ConnectionID(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	const unsigned = 0x8000
	four, eight := binary.LittleEndian.AppendUint32(nil, 1<<31), binary.LittleEndian.AppendUint64(nil, 1<<31)
	float := func(f float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)) }
	for _, c := range []struct {
		name  string
		typ   uint16
		value []byte
		want  uint64
	}{
		{"BIGINT", uint16(mysql.MYSQL_TYPE_LONGLONG), eight, 1 << 31},
		{"INT UNSIGNED", uint16(mysql.MYSQL_TYPE_LONG) | unsigned, four, 1 << 31},
		{"INT, which is negative", uint16(mysql.MYSQL_TYPE_LONG), four, 0},
		{"DOUBLE", uint16(mysql.MYSQL_TYPE_DOUBLE), float(1 << 31), 1 << 31},
		{"DOUBLE with a fraction", uint16(mysql.MYSQL_TYPE_DOUBLE), float(7.5), 0},
		{"text", uint16(mysql.MYSQL_TYPE_VAR_STRING), []byte("\x0a2147483648"), 1 << 31},
		{"too short", uint16(mysql.MYSQL_TYPE_LONGLONG), four, 0},
		{"a date", uint16(mysql.MYSQL_TYPE_DATE), []byte{0}, 0},
	} {
		if got := ParameterID(c.typ, c.value); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
