package admin

import (
	"context"
	"fmt"
	"math"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence/kind"
	"seqproxy/statement/ddl"
)

// kindOf is the kind of keys that CREATE SEQUENCE asks for.
func kindOf(name string, asked *ddl.Sequence) (k kind.Kind, err error) {
	jsonSafe := asked.JSONSafe == ddl.Yes
	switch asked.Kind.Word {
	case "":
		return k, nil
	case "BIT_REVERSED":
		k = kind.NewBitReversed(jsonSafe)
	case "ROTATE":
		k, err = kind.NewRotate(asked.Kind.N.Value, asked.Kind.Digits.Value, jsonSafe)
	case "SHARD BITS":
		k, err = kind.NewShardBits(asked.Kind.N.Value, jsonSafe)
	default:
		return k, notSupported(asked.Kind.Word)
	}
	if err != nil {
		return k, wrongKind(name, "%v", err)
	}
	if asked.TypeMax != 0 && k.MaxKey() > asked.TypeMax {
		return k, wrongKind(name, "its keys go up to %d, and the type behind AS holds up to %d", k.MaxKey(), asked.TypeMax)
	}
	return k, nil
}

// wrongKind is the error for a kind of keys that cannot be.
func wrongKind(name, format string, args ...any) error {
	return &protocol.ServerError{
		Code: mysql.ER_WRONG_ARGUMENTS, State: "HY000", Message: fmt.Sprintf("seqproxy: sequence '%s': ", name) + fmt.Sprintf(format, args...),
	}
}

// fits refuses a column that owns a sequence with a kind, if it does not hold all keys, or has keys of
// which the counters would soon be none.
func (o *owned) fits(k kind.Kind, column string) error {
	switch {
	case k.IsPlain():
		return nil
	case k.MaxKey() > o.limit:
		return wrongKind(column, "this column holds numbers up to %d, and keys of kind %v go up to %d: make it wider", o.limit, k, k.MaxKey())
	case o.floor > k.MaxCounter()/2:
		return wrongKind(column, "this column has keys that are not of kind %v: the counter of one of them would be %d, and at %d the sequence ends. "+
			"Begin with an empty table, or keep a plain sequence", k, o.floor, k.MaxCounter())
	}
	o.limit = math.MaxUint64 // counters end with the kind
	return nil
}

// decodeColumns are those of SELECT SEQUENCE_DECODE.
var decodeColumns = []protocol.Column{
	number("counter", 0),
	number("shard", 0),
	text("kind", 64, mysql.MYSQL_TYPE_VAR_STRING, 0),
}

// decode answers what a key of a sequence was made of: NULL where it is none of its keys.
func (s *Sequences) decode(ctx context.Context, asked *ddl.Sequence, by proxy.Caller) (*protocol.Table, error) {
	name := asked.Names[0]
	if may, err := sees(ctx, by, name); err != nil {
		return nil, err
	} else if !may {
		return nil, denied(name)
	}
	d, _, err := s.sequences.Describe(ctx, name)
	if err != nil {
		return nil, err
	}
	row := []any{nil, nil, kindShown(d.Kind)}
	if counter, shard, ok := d.Kind.Counter(asked.Key); ok {
		row[0] = counter
		if d.Kind.Name() == kind.ShardBits {
			row[1] = shard
		}
	}
	return &protocol.Table{Columns: decodeColumns, Rows: [][]any{row}}, nil
}
