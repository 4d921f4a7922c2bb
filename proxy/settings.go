package proxy

import (
	"seqproxy/backend"
	"seqproxy/proxy/login"
	"seqproxy/proxy/session"
)

// Reload puts other options to use, with the routes that belong to them. Shards, Sequences, Admin,
// RSA, Version and Logger stay those of New. Clients that connect from then on get the new ones. A
// session that runs uses them from its next command outside a transaction on, but its login, its
// user and how it talks to its client stay. One reload at a time may run.
func (s *Server) Reload(opts Options, routes *backend.Routes) {
	s.pausing.Lock()
	defer s.pausing.Unlock()
	before := s.options.Load()
	opts.Shards, opts.Sequences, opts.Admin = before.Shards, before.Sequences, before.Admin
	opts.RSA, opts.Version, opts.Logger = before.RSA, before.Version, before.Logger
	old := s.shared.Settings.Load().Routes
	s.use(opts, routes)
	for _, shard := range old.Named("") {
		if len(routes.Named(shard.Name())) == 0 {
			shard.Resume() // else what waits for it would, as its name is known no more
		}
	}
}

// use puts options to use, with the routes that belong to them.
func (s *Server) use(opts Options, routes *backend.Routes) {
	before := s.shared.Settings.Load()
	policy := policyOf(&opts, routes)
	if before != nil && s.options.Load().MaxLogins == opts.MaxLogins {
		policy.Queue = before.Login.Queue // whoever logs in now counts
	} else {
		policy.Queue = login.NewQueue(opts.MaxLogins)
	}
	set := session.NewSettings(opts.KeyOptions, opts.StatementOptions, routes, policy, before)
	set.AdminAddressOnly = opts.AdminAddressOnly
	s.options.Store(&opts)
	s.shared.Settings.Store(set)
}

// policyOf is what options say of logins.
func policyOf(opts *Options, routes *backend.Routes) login.Policy {
	p := login.Policy{
		Users: make(map[string]*login.Account), Relay: opts.RelayLogins, Admins: opts.Admins, Monitors: opts.Monitors,
		MaxConnections: opts.MaxConnections, MaxUserConnections: opts.MaxUserConnections, Timeout: opts.LoginTimeout,
		Failures:  login.NewRules(opts.FailedLogins, min(opts.FailedLoginDelay, opts.LoginTimeout/2), opts.FailedLoginExempt),
		Balancers: opts.ProxyProtocolFrom,
		Routes:    routes, Compression: opts.Compression, TLS: opts.TLS, RequireTLS: opts.RequireTLS, RSA: opts.RSA,
	}
	for i := range opts.Users {
		u := &opts.Users[i]
		p.Users[u.Name] = login.NewAccount(u)
		p.OldPasswords = p.OldPasswords || u.OldPassword != ""
	}
	return p
}

// What sessions use of the options is of package session, or of rooms below it.
type (
	KeyOptions       = session.KeyOptions
	StatementOptions = session.StatementOptions
	UnknownSequence  = session.UnknownSequence
	User             = session.User
	Binding          = session.Binding
	TicketTable      = session.TicketTable
	Caller           = session.Caller
	CallerSession    = session.CallerSession
	Numbered         = session.Numbered
)

// The policies for unknown names.
const (
	UnknownError  = session.UnknownError
	UnknownCreate = session.UnknownCreate
	UnknownRelay  = session.UnknownRelay
)
