package proxy

import (
	"sync/atomic"

	"seqproxy/backend"
	"seqproxy/proxy/login"
	"seqproxy/proxy/ticket"
)

// settings are what a reload changes, all at once: a server's are replaced, and never
// change themselves. Each command of a session sees one of them from begin to end.
type settings struct {
	Options
	routes  *backend.Routes
	login   login.Policy
	tickets ticket.Tables // nil: there are none
	memory  *statementMemory

	sequenceSchema string // of the sequence table

	names  sequenceNames
	steps  sequenceSteps
	setter sequenceSetter
	owners columnOwners

	bindings atomic.Pointer[bindings] // nil: see bound
}

// newSettings makes settings of options; before are those that they replace, or nil.
func newSettings(opts Options, routes *backend.Routes, before *settings) *settings {
	s := &settings{Options: opts, routes: routes, tickets: ticket.NewTables(opts.Tickets), sequenceSchema: opts.Sequences.Schema()}
	s.names, s.steps, s.setter, s.owners = opts.Sequences, opts.Sequences, opts.Sequences, opts.Sequences
	s.login = login.Policy{
		Users: make(map[string]*login.Account), Relay: opts.RelayLogins, Admins: opts.Admins, Monitors: opts.Monitors,
		MaxUserConnections: opts.MaxUserConnections, Timeout: opts.LoginTimeout,
		Failures:  login.NewRules(opts.FailedLogins, min(opts.FailedLoginDelay, opts.LoginTimeout/2), opts.FailedLoginExempt),
		Balancers: opts.ProxyProtocolFrom,
		Routes:    routes, Compression: opts.Compression, TLS: opts.TLS, RequireTLS: opts.RequireTLS, RSA: opts.RSA,
	}
	for i := range opts.Users {
		u := &opts.Users[i]
		s.login.Users[u.Name] = login.NewAccount(u)
		s.login.OldPasswords = s.login.OldPasswords || u.OldPassword != ""
	}
	if before != nil && before.MaxLogins == opts.MaxLogins {
		s.login.Queue = before.login.Queue // whoever logs in now counts
	} else {
		s.login.Queue = login.NewQueue(opts.MaxLogins)
	}
	if before != nil && before.StatementMemory == opts.StatementMemory {
		s.memory = before.memory
	} else {
		// what is held of the one before is beside it
		s.memory = newStatementMemory(opts.StatementMemory)
	}
	return s
}
