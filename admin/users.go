package admin

import (
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement/ddl"
)

var userColumns = []protocol.Column{
	word("user", 128),
	word("right", 16),
	word("checked_by", 8),
	number("sessions", mysql.NOT_NULL_FLAG),
	number("max_connections", 0),
	maybe("sequences", 1024),
	maybe("schema", 64),
	maybe("requires", 1024),
}

// Users are the users that a configuration names.
type Users struct {
	Checked          []User   // users whose password the proxy checks, in the order of the file
	Admins, Monitors []string // users with these rights, whichever server checks the password
	MaxConnections   int      // for each user without a limit of its own; 0 means any number
}

// User is a user whose password the proxy checks.
type User struct {
	Name           string
	MaxConnections int      // 0: the limit in Users
	Sequences      []string // the sequences that it may use; nil means all
	Schema         string   // for a login that names none
	Requires       []string // what a login needs in addition to the password
}

// userRows lists the configured users, and other users who are connected or have rights.
func userRows(c Overview, _ *ddl.ProxyCommand) (rows [][]any, _ error) {
	users := c.Configuration().Users()
	sessions := make(map[string]uint64)
	for _, u := range c.Server().Stats().Users {
		sessions[u.Name] = u.N
	}
	limit := func(n int) any {
		if n == 0 {
			n = users.MaxConnections
		}
		if n == 0 {
			return nil
		}
		return uint64(n)
	}
	right := func(name string) string {
		switch {
		case slices.Contains(users.Admins, name):
			return "admin"
		case slices.Contains(users.Monitors, name):
			return "monitor"
		}
		return ""
	}
	listed := make(map[string]bool)
	for _, u := range users.Checked {
		listed[u.Name] = true
		rows = append(rows, []any{
			u.Name, right(u.Name), "proxy", sessions[u.Name], limit(u.MaxConnections), allowed(u.Sequences), unlessEmpty(u.Schema), unlessEmpty(list(u.Requires)),
		})
	}
	var others []string
	for _, names := range [][]string{users.Admins, users.Monitors} {
		others = append(others, names...)
	}
	for name := range sessions {
		others = append(others, name)
	}
	slices.Sort(others)
	for _, name := range slices.Compact(others) {
		if !listed[name] {
			rows = append(rows, []any{name, right(name), "server", sessions[name], limit(0), nil, nil, nil})
		}
	}
	return rows, nil
}

// allowed lists the sequences that a user may use. NULL means all, an empty text none.
func allowed(sequences []string) any {
	if sequences == nil {
		return nil
	}
	return list(sequences)
}
