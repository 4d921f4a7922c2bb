package proxy

import (
	"sync/atomic"

	"seqproxy/backend"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/login"
	"seqproxy/proxy/ticket"
)

// settings are what a reload changes, all at once: a server's are replaced, and never
// change themselves. Each command of a session sees one of them from begin to end.
type settings struct {
	Options
	routes       *backend.Routes
	users        map[string]*User
	oldPasswords bool          // some user has an old password
	tickets      ticket.Tables // nil: there are none
	logins       *login.Queue  // nil: unbounded
	memory       *statementMemory
	failures     login.Rules

	bindings atomic.Pointer[bindings] // nil: see bound
}

// newSettings makes settings of options; before are those that they replace, or nil.
func newSettings(opts Options, routes *backend.Routes, before *settings) *settings {
	s := &settings{
		Options: opts, routes: routes, users: make(map[string]*User),
		tickets: ticket.NewTables(opts.Tickets), failures: login.NewRules(opts.FailedLogins, min(opts.FailedLoginDelay, opts.LoginTimeout/2), opts.FailedLoginExempt),
	}
	for _, u := range opts.Users {
		u.rights = keys.NewRights(u.Sequences)
		s.users[u.Name] = &u
		s.oldPasswords = s.oldPasswords || u.OldPassword != ""
	}
	if before != nil && before.MaxLogins == opts.MaxLogins {
		s.logins = before.logins // whoever logs in now counts
	} else {
		s.logins = login.NewQueue(opts.MaxLogins)
	}
	if before != nil && before.StatementMemory == opts.StatementMemory {
		s.memory = before.memory
	} else {
		s.memory = newStatementMemory(opts.StatementMemory) // what is held of the one before is beside it
	}
	return s
}
