package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/plan"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// facts asks the sequences and the servers about names, columns and variables of any text.
type facts struct{ *ground }

// InUTF8 returns the name of a sequence in a client's text, converted to UTF-8. The result shares
// name's memory if nothing changes.
func (f *facts) InUTF8(name []byte, charset string) ([]byte, error) {
	converted, is := plan.UTF8(name, charset)
	if is == plan.Unasked {
		text, isText, err := f.askUTF8(name, charset)
		if isText || err != nil {
			return text, err
		}
	} else if is == plan.Yes {
		return converted, nil
	}
	return nil, protocol.NotSupported("the sequence name %q in this character set is not supported: SET NAMES utf8mb4, or use ASCII letters", name)
}

// nameOf is InUTF8 for a name in a parameter.
func (f *facts) nameOf(name []byte) ([]byte, error) { return f.InUTF8(name, f.state.Charset) }

// askUTF8 converts a name from a character set that only a server has. is reports whether it is a
// valid name.
func (f *facts) askUTF8(name []byte, charset string) (text []byte, is bool, err error) {
	text, err = f.at.set.names.InUTF8(&f.numbers.Patience, charset, name)
	if err = f.numbers.Patience.Over(err); errors.Is(err, sequence.ErrNoText) {
		return nil, false, nil
	}
	return text, err == nil, err
}

// convert is InUTF8 in place.
func (f *facts) convert(name *[]byte, charset string) (err error) {
	if len(*name) > 0 {
		*name, err = f.InUTF8(*name, charset)
	}
	return err
}

func ascii(b []byte) bool { return plan.ASCII(b) }

// Exists reports whether there is a sequence of that name.
func (f *facts) Exists(name []byte) (bool, error) {
	exists, err := f.at.set.names.Exists(&f.numbers.Patience, name)
	return exists, f.numbers.Patience.Over(err)
}

// mayUse reports whether the user may use a sequence.
func (f *facts) mayUse(ctx context.Context, name []byte) (bool, error) {
	if f.at.login.Account.Rights == nil {
		return true, nil
	}
	return f.at.login.Account.Rights.Allow(ctx, f.at.set.right, name)
}

// Sees reports whether the user may look at a sequence.
func (f *facts) Sees(name []byte) (bool, error) {
	if f.at.login.Account.MaySee() {
		return true, nil
	}
	may, err := f.mayUse(&f.numbers.Patience, name)
	return may, f.numbers.Patience.Over(err)
}

// Ask runs a statement of the proxy's own, for a Writer.
func (f *facts) Ask(c *backend.Conn, sql string) ([][][]byte, error) { return f.at.Ask(c, sql) }

// errNotAdmin refuses what only admins may do.
var errNotAdmin = protocol.Errorf(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000", "Access denied; you need to be one of the proxy's admin_users for this operation")

// RefuseSetval audits and returns the error for a SETVAL by a user who is no admin: as with ALTER,
// only admins may set a sequence.
func (f *facts) RefuseSetval(a *plan.Slot) error {
	name, value := "?", "?"
	if a.Sequence != nil {
		name = plan.Quoted(keys.Named(a.Sequence))
	}
	if a.Set != nil && !a.Set.Param && !a.Set.Negative {
		value = strconv.FormatUint(a.Set.Value, 10)
	}
	f.at.Audit("SETVAL("+name+", "+value+")", errNotAdmin)
	return errNotAdmin
}

// MayInsert returns an error if the server does not let the user give a key to rows of a table. It
// makes the server prepare the shortest INSERT that does.
func (f *facts) MayInsert(k *plan.FilledKey) error {
	c, err := f.at.Attach()
	if err != nil {
		return err
	}
	rest := " VALUES ()"
	if plan.ASCII([]byte(k.Binding.Column)) { // and so in the client's character set
		rest = " (`" + strings.ReplaceAll(k.Binding.Column, "`", "``") + "`) VALUES (1)"
	}
	err = f.relay.tryPrepare(c, slices.Concat([]byte("INSERT INTO "), k.Table, []byte(rest)), nil)
	if refused := new(protocol.ServerError); k.Statement > 0 && errors.As(err, &refused) {
		return protocol.NotSupported("an INSERT into %s with a number of its own above those of sequence %s, behind a statement without which the server refuses it (%s), is not supported: send it alone",
			k.Binding.Table, k.Binding.Sequence, refused.Message)
	}
	return err
}

// Setval runs SETVAL() for the taker. It returns the value, or NULL if the sequence is beyond it
// already.
func (f *facts) Setval(name []byte, set *statement.SetvalArgs) (keys.Number, error) {
	if set.Negative { // a negative number is behind every sequence
		_, err := f.at.set.setter.Identify(&f.numbers.Patience, name)
		return keys.Number{Null: true}, f.numbers.Patience.Over(err)
	}
	value, ok, err := f.at.set.setter.SetValue(&f.numbers.Patience, name, set.Value, !set.Unused)
	err = f.numbers.Patience.Over(err)
	f.at.Audit(fmt.Sprintf("SETVAL(%s, %d)", plan.Quoted(keys.Named(name)), set.Value), err)
	if err != nil {
		return keys.Number{}, inFull(err) // only an admin gets here
	}
	return keys.Number{Value: value, Null: !ok}, nil
}

// killed returns the id that a KILL names, or 0 if it names none. variable is the user variable
// that may stand for it.
func (f *facts) killed(k *statement.KillTarget, variable string) (uint64, error) {
	switch k.Operand {
	case statement.KillVariable:
		return f.userVariable(variable)
	case statement.KillSelf:
		return uint64(f.at.id), nil
	}
	return k.ID, nil
}

// userVariable returns the value of a user variable ("@x"), or 0 if it is no id.
func (f *facts) userVariable(name string) (uint64, error) {
	if f.at.cur == nil { // nothing was set yet
		return 0, nil
	}
	c, err := f.at.Attach()
	if err != nil {
		return 0, err
	}
	row, err := f.at.AskRow(c, "SELECT "+name, 1, "a variable's value")
	if err != nil {
		return 0, err
	}
	return kill.ConnectionID(string(row[0])), nil
}

// severalAgreed reports whether a text may be of several statements.
func (f *facts) severalAgreed() bool {
	if len(f.state.Option) > 0 { // of the last COM_SET_OPTION
		return f.state.Option[0] == 0 && f.state.Option[1] == 0
	}
	return f.at.login.Capabilities.Has(protocol.MultiStatements)
}
