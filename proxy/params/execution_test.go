package params

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

// execution is a COM_STMT_EXECUTE that binds parameters of these names as NULL.
func execution(names ...string) []byte {
	b := make([]byte, ExecuteHead)
	b = protocol.AppendLenEncInt(b, uint64(len(names)))
	for range (len(names) + 7) / 8 {
		b = append(b, 0xff)
	}
	b = append(b, 1)
	for _, name := range names {
		b = binary.LittleEndian.AppendUint16(b, uint16(mysql.MYSQL_TYPE_NULL))
		b = protocol.AppendLenEncBytes(b, []byte(name))
	}
	return b
}

// A statement keeps the names of its parameters for the next execution.
func TestTheNamesOfParametersAreBounded(t *testing.T) {
	half := strings.Repeat("n", maxNames/2)
	p := &List{Params: 2}
	for _, c := range []struct {
		name  string
		names []string
		err   error
	}{
		{"none", []string{"", ""}, nil},
		{"as many as may be", []string{half, half}, nil},
		{"one byte more", []string{half, half + "n"}, errNames},
		{"one long name", []string{half + half + "n", ""}, errNames},
		{"after a refusal", []string{"a", "b"}, nil},
		{"long names of attributes, which are not kept", []string{"a", "b", half, half + "n"}, nil},
	} {
		e, err := p.Cut(execution(c.names...), true)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.err)
		}
		kept := 0
		for _, name := range slices.Concat(p.Types.names, p.before.names) {
			kept += len(name)
		}
		if kept > 2*maxNames {
			t.Errorf("%s: the statement keeps %d bytes of names", c.name, kept)
		}
		if c.err == nil && (!e.Whole || string(p.Types.At(0).Name) != c.names[0] || string(p.Types.At(1).Name) != c.names[1]) {
			t.Errorf("%s: got the names %.20q and %.20q", c.name, p.Types.At(0).Name, p.Types.At(1).Name)
		}
	}
}

// A pool of connections keeps many statements, and those of many rows have very many parameters.
func TestAParameterTakesFewBytes(t *testing.T) {
	const n, most = 10_000, 5 // the types of this execution and of the last one
	payload, p := execution(make([]string, n)...), &List{Params: n}
	cut := func() {
		if e, err := p.Cut(payload, true); err != nil || !e.Whole {
			t.Fatalf("got %+v, %v", e, err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cut()
	cut()
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / n; got > most {
		t.Errorf("each takes %d bytes, want %d at most", got, most)
	}
	if got := testing.AllocsPerRun(10, cut); got > 0 {
		t.Errorf("a further execution takes memory %v times, want none", got)
	}
}
