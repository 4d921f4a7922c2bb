package proxy

import (
	"fmt"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/statement"
)

// maySet is nil if a call is no SETVAL, or the user may set a sequence on: as with ALTER, only
// admins may. A refusal is audited.
func (s *session) maySet(a asked) error {
	if a.fn != statement.Setval || s.user.Admin {
		return nil
	}
	err := sqlError(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000", "Access denied; you need to be one of the proxy's admin_users for this operation")
	name, value := "?", "?"
	if a.name != nil {
		name = quotedName(limit(string(a.name), maxNamed))
	}
	if a.set != nil && !a.set.Param && !a.set.Negative {
		value = strconv.FormatUint(a.set.Value, 10)
	}
	s.audit("SETVAL("+name+", "+value+")", err)
	return err
}

// takeInTurn is take for a text with SETVAL, which changes what the calls behind it give.
func (s *session) takeInTurn(asks []asked) (values []number, err error) {
	values = make([]number, len(asks))
	for i := range asks {
		if asks[i].name == nil {
			continue
		}
		switch asks[i].fn {
		case statement.Nextval:
			values[i].value, err = s.takeNumbers(asks[i].name, asks[i].count)
		case statement.Lastval:
			values[i], err = s.lastOf(asks[i].name)
		default:
			values[i], err = s.setval(asks[i].name, asks[i].set)
		}
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

// setvalAlone refuses a SETVAL where it cannot be done once and before anything else.
func setvalAlone(st *statement.Statement, plan callPlan) error {
	for i := range st.Calls {
		switch call := &st.Calls[i]; {
		case call.Func != statement.Setval || !plan.served[i]:
		case call.Set == nil:
			return notSupported("SETVAL with something else than literals is not supported: SELECT SETVAL(s, 1000)")
		case !st.SelfContained:
			return notSupported("SETVAL in a larger statement is not supported: SELECT SETVAL(%s, %d) alone", call.Name, call.Set.Value)
		case call.Set.Round != 0:
			return notSupported("SETVAL with a round other than 0 is not supported: rounds of a sequence that cycles are not counted here")
		}
	}
	return nil
}

// setval is SETVAL(): it returns the value, or NULL where the sequence is beyond it already.
func (s *session) setval(name []byte, set *statement.SetvalArgs) (number, error) {
	if set.Negative { // which is behind, wherever the sequence is
		_, err := s.set.Sequences.Identify(&s.patience, name)
		return number{null: true}, s.patience.over(err)
	}
	value, ok, err := s.set.Sequences.SetValue(&s.patience, name, set.Value, !set.Unused)
	err = s.patience.over(err)
	s.audit(fmt.Sprintf("SETVAL(%s, %d)", quotedName(limit(string(name), maxNamed)), set.Value), err)
	if err != nil {
		return number{}, inFull(err) // to an admin
	}
	return number{value: value, null: !ok}, nil
}
