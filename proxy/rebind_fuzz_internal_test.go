package proxy

import (
	"bytes"
	"slices"
	"testing"

	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// FuzzExecution: whatever a client sends for an execution with numbers, what goes to the
// server has as many parameters as the server's statement, and the client's in their
// places.
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
		if len(payload) < executeHead {
			return
		}
		p := &prepared{params: int(params % 20), backendID: 7}
		arguments := 0
		if params&2 != 0 && p.params > 1 { // the first takes two of the client's
			arguments = 2
		}
		for range 1 + places%4 { // at 0, 2, 4 ..., with the client's between and behind them
			if at := 2 * len(p.hidden); at <= p.params-arguments+len(p.hidden) {
				p.hidden = append(p.hidden, hiddenParam{at: at, Slot: plan.Slot{When: plan.Once, Func: statement.Nextval, Sequence: []byte("s"), Count: 1}})
			}
		}
		if arguments > 0 {
			p.hidden[0].from = argument{1, 2}
		}
		p.placeParams(p.params - arguments + len(p.hidden))
		values := make([]keys.Number, len(p.hidden))
		if params&1 != 0 && len(p.hidden) > 0 { // a LASTVAL, which is NULL
			p.hidden[0].Func, values[0].Null = statement.Lastval, true
		}

		if rows, err := p.cutBulk(payload); err == nil {
			many := slices.Repeat(values, len(rows))
			b := p.appendBulk(nil, payload, rows, many)
			server := &prepared{params: p.params - arguments + len(p.hidden)}
			again, err := server.cutBulk(b)
			if err != nil || len(again) != len(rows) {
				t.Errorf("bulk: the server reads %d rows, %v, of %x, want %d", len(again), err, b, len(rows))
			}
		}

		p.types = nil
		e, err := p.cut(payload, attributes)
		if err != nil {
			return
		}
		b, err := p.appendExecute(nil, &e, attributes, values)
		if err != nil {
			return
		}
		server := &prepared{params: p.params - arguments + len(p.hidden)}
		got, err := server.cut(b, attributes)
		if err != nil {
			t.Fatalf("the server cannot read %x: %v", b, err)
		}
		if want := e.count - arguments + len(p.hidden); got.count != want || !got.params.Rebound {
			t.Errorf("got %d parameters, bound anew %v, want %d", got.count, got.params.Rebound, want)
		}
		for i, at := range p.place {
			if at == noPlace {
				continue
			}
			if got.params.IsNull(int(at)) != e.params.IsNull(i) || server.types[at].Type != p.types[i].Type || !bytes.Equal(server.types[at].Name, p.types[i].Name) {
				t.Errorf("parameter %d, the server's %d, is another there", i, at)
			}
		}
		for i, h := range p.hidden {
			if got.params.IsNull(h.at) != values[i].Null || server.types[h.at].Type != h.paramType() {
				t.Errorf("the number at %d: got type %x, NULL %v", h.at, server.types[h.at].Type, got.params.IsNull(h.at))
			}
		}
		for i := p.params; i < e.count; i++ {
			if got.params.IsNull(i-arguments+len(p.hidden)) != e.params.IsNull(i) {
				t.Errorf("attribute %d: NULL differs", i-p.params)
			}
		}
	})
}
