package params

import (
	"encoding/binary"
	"errors"
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
		for _, typ := range append(p.Types, p.before...) {
			kept += len(typ.Name)
		}
		if kept > 2*maxNames {
			t.Errorf("%s: the statement keeps %d bytes of names", c.name, kept)
		}
		if c.err == nil && (!e.Whole || string(p.Types[0].Name) != c.names[0] || string(p.Types[1].Name) != c.names[1]) {
			t.Errorf("%s: got the names %.20q and %.20q", c.name, p.Types[0].Name, p.Types[1].Name)
		}
	}
}
