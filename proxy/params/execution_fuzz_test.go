package params

import (
	"bytes"
	"slices"
	"testing"

	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// FuzzExecution: for any execution with numbers, the server gets as many parameters as its
// statement has, with the client's in their places.
func FuzzExecution(f *testing.F) {
	head := "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"
	withCount := "\x17\x01\x00\x00\x00\x08\x01\x00\x00\x00"
	f.Add([]byte(head), uint8(0), uint8(1), false)
	f.Add([]byte(head+"\x00\x01\x08\x00\x01\x02\x03\x04\x05\x06\x07\x08"), uint8(1), uint8(1), false)
	f.Add([]byte(head+"\x02\x01\x08\x00\xfd\x00\x01\x02\x03\x04\x05\x06\x07\x08"), uint8(2), uint8(5), false)
	f.Add([]byte(withCount+"\x02\x00\x01\x08\x00\x00\xfd\x00\x01a\x01\x02\x03\x04\x05\x06\x07\x08\x03xyz"), uint8(1), uint8(1), true)
	f.Add([]byte(withCount+"\x01\x00\x01\xfd\x00\x01a\x03xyz"), uint8(0), uint8(1), true)
	f.Add([]byte("\xfa\x01\x00\x00\x00\x80\x00\xfd\x00\x00\x03one\x01\x00\x03two"), uint8(1), uint8(1), false)
	f.Fuzz(func(t *testing.T, payload []byte, params, places uint8, attributes bool) {
		if len(payload) < ExecuteHead {
			return
		}
		p := &List{Params: int(params % 20)}
		arguments := 0
		if params&2 != 0 && p.Params > 1 { // the first takes two of the client's
			arguments = 2
		}
		for range 1 + places%4 { // at 0, 2, 4 ..., with the client's between and after them
			if at := 2 * len(p.Hidden); at <= p.Params-arguments+len(p.Hidden) {
				p.Hidden = append(p.Hidden, Hidden{At: at, Slot: plan.Slot{When: plan.Once, Func: statement.Nextval, Sequence: []byte("s"), Count: 1}})
			}
		}
		if arguments > 0 {
			p.Hidden[0].From = Argument{1, 2}
		}
		p.Place(p.Params - arguments + len(p.Hidden))
		values := make([]keys.Number, len(p.Hidden))
		if params&1 != 0 && len(p.Hidden) > 0 { // a LASTVAL, which is NULL
			p.Hidden[0].Func, values[0].Null = statement.Lastval, true
		}

		if e, err := p.CutBulk(payload); err == nil {
			many := slices.Repeat(values, e.rows())
			b, err := p.Append(nil, 7, &e, false, many, 0)
			if err != nil {
				t.Fatal(err)
			}
			server := &List{Params: p.Params - arguments + len(p.Hidden)}
			again, err := server.CutBulk(b)
			if err != nil || again.rows() != e.rows() {
				t.Errorf("bulk: the server reads %d rows, %v, of %x, want %d", again.rows(), err, b, e.rows())
			}
		}

		p.Types = Types{}
		e, err := p.Cut(payload, attributes)
		if err != nil {
			return
		}
		b, err := p.Append(nil, 7, &e, attributes, values, 0)
		if err != nil {
			return
		}
		server := &List{Params: p.Params - arguments + len(p.Hidden)}
		got, err := server.Cut(b, attributes)
		if err != nil {
			t.Fatalf("the server cannot read %x: %v", b, err)
		}
		if want := e.count - arguments + len(p.Hidden); got.count != want || !got.Params.Rebound {
			t.Errorf("got %d parameters, bound anew %v, want %d", got.count, got.Params.Rebound, want)
		}
		for i, at := range p.place {
			if at == noPlace {
				continue
			}
			if got.Params.IsNull(int(at)) != e.Params.IsNull(i) || server.Types.At(int(at)).Type != p.Types.At(i).Type || !bytes.Equal(server.Types.At(int(at)).Name, p.Types.At(i).Name) {
				t.Errorf("parameter %d differs from the server's %d", i, at)
			}
		}
		for i, h := range p.Hidden {
			if got.Params.IsNull(h.At) != values[i].Null || server.Types.Of[h.At] != h.paramType() {
				t.Errorf("the number at %d: got type %x, NULL %v", h.At, server.Types.Of[h.At], got.Params.IsNull(h.At))
			}
		}
		for i := p.Params; i < e.count; i++ {
			if got.Params.IsNull(i-arguments+len(p.Hidden)) != e.Params.IsNull(i) {
				t.Errorf("attribute %d: NULL differs", i-p.Params)
			}
		}
	})
}
