package session

import (
	"fmt"
	"sort"
	"strings"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
)

// variables names the missing values in an error of systemSets and userSets.
const variables = "the session's variables"

// carryVariables sets on c what the session has set since c was last current. It asks the current
// connection for the values of system variables.
func (b *backends) carryVariables(c *backend.Conn) error {
	st := b.state
	since := st.SyncedTo(idOfConn(c))
	if len(st.Option) > 0 {
		if err := b.runCommand(c, protocol.ComSetOption, string(st.Option)); err != nil {
			return err
		}
	}
	if since == st.Version {
		return nil
	}
	sets, err := b.systemSets(c, since)
	if err != nil {
		return err
	}
	user, err := b.userSets(since)
	if err != nil {
		return err
	}
	// The server reads the texts of user variables by the system variables.
	for _, list := range [][]string{sets, user} {
		if len(list) == 0 {
			continue
		}
		if _, err := b.Ask(c, "SET "+strings.Join(list, ", ")); err != nil {
			return err
		}
	}
	st.Synced(idOfConn(c), st.Version)
	return nil
}

// systemSets returns assignments of the system variables that were set after version since, as c's
// server takes them. It keeps SET NAMES, because only that gives results the collation that clients
// expect.
func (b *backends) systemSets(c *backend.Conn, since int) (sets []string, err error) {
	named := b.state.Names > since
	var names []string
	for name, version := range b.state.Sysvars {
		if version > since && !(named && state.SetByNames(name)) {
			names = append(names, isolationName(name, b.cur.Hello))
		}
	}
	sort.Strings(names)
	system := len(names)
	if named {
		names = append(names, "character_set_client", "collation_connection")
	}
	if len(names) == 0 {
		return nil, nil
	}
	values, err := b.AskRow(b.cur, "SELECT @@session."+strings.Join(names, ", @@session."), len(names), variables)
	if err != nil {
		return nil, err
	}
	for i, value := range values[:system] {
		sets = append(sets, "@@session."+isolationName(names[i], c.Hello)+" = "+literal(value))
	}
	if named {
		sets = append(sets, "NAMES "+literal(values[system])+" COLLATE "+literal(values[system+1]))
	}
	return sets, nil
}

// userSets is systemSets for user variables. It keeps numbers as the client wrote them. The bytes
// of a string depend on the character set and sql_mode at the time of its SET, so it asks the
// current connection for them.
func (b *backends) userSets(since int) (sets []string, err error) {
	var names, ask []string
	for name, v := range b.state.Uservars {
		quoted := "@`" + strings.ReplaceAll(name, "`", "``") + "`"
		switch {
		case v.Version <= since:
		case v.Number != "":
			sets = append(sets, quoted+" = "+v.Number)
		default:
			names = append(names, quoted)
			ask = append(ask, "HEX("+quoted+"), CHARSET("+quoted+"), COLLATION("+quoted+")")
		}
	}
	if len(names) == 0 {
		return sets, nil
	}
	values, err := b.AskRow(b.cur, "SELECT "+strings.Join(ask, ", "), 3*len(names), variables)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		hex, charset, collation := values[3*i], values[3*i+1], values[3*i+2]
		if hex == nil {
			sets = append(sets, name+" = NULL")
			continue
		}
		sets = append(sets, fmt.Sprintf("%s = _%s X'%s' COLLATE `%s`", name, charset, hex, collation))
	}
	return sets, nil
}

// isolationName returns the server's name of a variable of SET TRANSACTION, which MySQL 8 renamed.
func isolationName(name string, h *backend.Hello) string {
	if h.MariaDB {
		return state.HereName(name)
	}
	switch name {
	case "tx_isolation":
		return "transaction_isolation"
	case "tx_read_only":
		return "transaction_read_only"
	}
	return name
}

// literal writes a variable's value for SET. Numbers have no quotes, since numeric variables refuse
// strings.
func literal(value []byte) string {
	if value == nil {
		return "NULL"
	}
	for i, b := range value {
		if (b < '0' || b > '9') && b != '.' && (b != '-' || i > 0) || len(value) > 20 {
			return plan.Literal(string(value))
		}
	}
	if len(value) == 0 {
		return "''"
	}
	return string(value)
}
