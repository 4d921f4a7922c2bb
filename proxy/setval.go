package proxy

import (
	"fmt"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// refuseSetval is the error for a SETVAL of one who may not set a sequence on: as with ALTER, only
// admins may. It is audited.
func (s *session) refuseSetval(a *plan.Slot) error {
	err := sqlError(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000", "Access denied; you need to be one of the proxy's admin_users for this operation")
	name, value := "?", "?"
	if a.Sequence != nil {
		name = plan.Quoted(limit(string(a.Sequence), maxNamed))
	}
	if a.Set != nil && !a.Set.Param && !a.Set.Negative {
		value = strconv.FormatUint(a.Set.Value, 10)
	}
	s.audit("SETVAL("+name+", "+value+")", err)
	return err
}

// takeInTurn is take for a text with SETVAL, which changes what the calls behind it give.
func (s *session) takeInTurn(asks []plan.Slot) (values []number, err error) {
	values = make([]number, len(asks))
	for i := range asks {
		if !asks[i].Takes() {
			continue
		}
		switch asks[i].Func {
		case statement.Nextval:
			values[i].value, err = s.takeNumbers(asks[i].Sequence, asks[i].Count)
		case statement.Lastval:
			values[i], err = s.lastOf(asks[i].Sequence)
		default:
			values[i], err = s.setval(asks[i].Sequence, asks[i].Set)
		}
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

// setval is SETVAL(): it returns the value, or NULL where the sequence is beyond it already.
func (s *session) setval(name []byte, set *statement.SetvalArgs) (number, error) {
	if set.Negative { // which is behind, wherever the sequence is
		_, err := s.set.Sequences.Identify(&s.patience, name)
		return number{null: true}, s.patience.over(err)
	}
	value, ok, err := s.set.Sequences.SetValue(&s.patience, name, set.Value, !set.Unused)
	err = s.patience.over(err)
	s.audit(fmt.Sprintf("SETVAL(%s, %d)", plan.Quoted(limit(string(name), maxNamed)), set.Value), err)
	if err != nil {
		return number{}, inFull(err) // to an admin
	}
	return number{value: value, null: !ok}, nil
}
