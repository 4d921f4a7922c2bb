package session

import (
	"fmt"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// RefuseSetval is the error for a SETVAL of one who may not set a sequence on: as with ALTER, only
// admins may. It is audited.
func (f *facts) RefuseSetval(a *plan.Slot) error {
	err := protocol.Errorf(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000", "Access denied; you need to be one of the proxy's admin_users for this operation")
	name, value := "?", "?"
	if a.Sequence != nil {
		name = plan.Quoted(keys.Named(a.Sequence))
	}
	if a.Set != nil && !a.Set.Param && !a.Set.Negative {
		value = strconv.FormatUint(a.Set.Value, 10)
	}
	f.at.Audit("SETVAL("+name+", "+value+")", err)
	return err
}

// Setval is SETVAL(), for the taker: it returns the value, or NULL where the sequence is beyond it
// already.
func (f *facts) Setval(name []byte, set *statement.SetvalArgs) (keys.Number, error) {
	if set.Negative { // which is behind, wherever the sequence is
		_, err := f.at.set.setter.Identify(&f.numbers.Patience, name)
		return keys.Number{Null: true}, f.numbers.Patience.Over(err)
	}
	value, ok, err := f.at.set.setter.SetValue(&f.numbers.Patience, name, set.Value, !set.Unused)
	err = f.numbers.Patience.Over(err)
	f.at.Audit(fmt.Sprintf("SETVAL(%s, %d)", plan.Quoted(keys.Named(name)), set.Value), err)
	if err != nil {
		return keys.Number{}, inFull(err) // to an admin
	}
	return keys.Number{Value: value, Null: !ok}, nil
}
