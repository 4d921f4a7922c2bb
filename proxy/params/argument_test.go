package params

import (
	"bytes"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

func TestNamesThatComeInPiecesAreKeptInBoundedMemory(t *testing.T) {
	var p List
	name := bytes.Repeat([]byte("n"), 60)
	for i := range 2 * maxLongArguments {
		p.keepArgument(i, name)
		p.keepArgument(i, name)
	}
	p.keepArgument(1, bytes.Repeat(name, 1000))
	size := 0
	for i := range 2 * maxLongArguments {
		if i < maxLongArguments {
			size += cap(p.longArgs[i])
		}
		v := Value{long: true, kind: protocol.Parameter{Type: uint16(mysql.MYSQL_TYPE_BLOB)}, data: p.longArgs[i]}
		text, ok := v.text()
		if want := i < maxLongArguments && i != 1; ok != want || ok && len(text) != 120 {
			t.Errorf("parameter %d: got %d bytes, %v, want %v", i, len(text), ok, want)
		}
	}
	if size > maxLongArguments*2*maxArgument {
		t.Errorf("got %d bytes", size)
	}
	if !bytes.Equal(tooLong, make([]byte, maxArgument)) {
		t.Error("the shared value of too long arguments has changed")
	}
}
