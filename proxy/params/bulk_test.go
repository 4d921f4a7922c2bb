package params

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// bulkExecution is a COM_STMT_BULK_EXECUTE of rows with one BIGINT: 0 is NULL.
func bulkExecution(numbers ...uint64) []byte {
	b := make([]byte, BulkHead)
	binary.LittleEndian.PutUint16(b[5:], bulkSendTypes)
	b = binary.LittleEndian.AppendUint16(b, uint16(mysql.MYSQL_TYPE_LONGLONG))
	for _, n := range numbers {
		if n == 0 {
			b = append(b, bulkNull)
		} else {
			b = binary.LittleEndian.AppendUint64(append(b, bulkValue), n)
		}
	}
	return b
}

// keyed is what INSERT INTO photos (id) VALUES (?) becomes, with three parameters.
func keyed() *List {
	p := &List{
		Params: 1, Hidden: []Hidden{{At: 1}, {At: 2}},
		Key: &Key{Binding: &plan.Binding{Table: "photos", Column: "id", Sequence: "p"}, rows: []keyRow{{param: 0, number: 0, first: 1, filling: statement.FillParam}}},
	}
	p.Place(3)
	return p
}

// execute does with a bulk execution what a session does. The keys begin at 100.
func (p *List) execute(t *testing.T, payload, b []byte) []byte {
	t.Helper()
	e, err := p.CutBulk(payload)
	if err != nil {
		t.Fatal(err)
	}
	asks, err := p.Asks(nil, &e, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.FillKeys(&e, 0, func() (state.InsertModes, error) { return state.InsertModes{Increment: 1}, nil })
	if err != nil {
		t.Fatal(err)
	}
	f.Keys[0].First = 100
	if b, err = p.Append(b, 7, &e, false, make([]keys.Number, len(asks)), 0); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheRowsOfABulkExecutionGetTheirKeysInOrder(t *testing.T) {
	p, server := keyed(), &List{Params: 3}
	got, err := server.CutBulk(p.execute(t, bulkExecution(5, 0, 6, 0, 0), nil))
	if err != nil || got.rows() != 5 {
		t.Fatalf("got %d rows, %v, want 5", got.rows(), err)
	}
	for i, want := range [][3]uint64{{5, 0, 0}, {0, 0, 100}, {6, 0, 0}, {0, 101, 0}, {0, 102, 0}} { // 0 is NULL
		value := server.argumentsInRow(got.bulk[i])
		for at := range want {
			v := value(at)
			n, _, _ := v.integer()
			if n != want[at] || v.null != (want[at] == 0) {
				t.Errorf("row %d: parameter %d is %d, NULL %v, want %d", i, at, n, v.null, want[at])
			}
		}
	}
}

// Drivers send up to 16 MB at once.
func TestABulkExecutionIsRefusedOnlyIfItsNumbersMakeItTooLong(t *testing.T) {
	const rows = 800_000
	p := keyed()
	if got := len(p.execute(t, bulkExecution(make([]uint64, rows)...), nil)); got < protocol.MaxFragment/2 || got > protocol.MaxFragment {
		t.Errorf("got %d bytes, want most of a packet", got)
	}
}

func TestTheRowsOfABulkExecutionTakeLittleMemory(t *testing.T) {
	const rows = 200_000
	for name, first := range map[string]uint64{"keys of their own": 1, "keys that are filled in": 0} {
		numbers := make([]uint64, rows)
		for i := range numbers {
			numbers[i] = first * uint64(i+1)
		}
		p, payload, room := keyed(), bulkExecution(numbers...), make([]byte, 0, 64*rows)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p.execute(t, payload, room)
		runtime.ReadMemStats(&after)
		const most = 240 // slices that grow take five times what they hold in the end
		if got := (after.TotalAlloc - before.TotalAlloc) / rows; got > most {
			t.Errorf("%s: got %d bytes a row, want %d at most", name, got, most)
		}
	}
}
