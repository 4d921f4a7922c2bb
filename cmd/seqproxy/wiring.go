package main

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/conf"
	"seqproxy/internal/tlsfiles"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// The functions here turn the configuration into the options of each part.

// sequenceOptions returns the configured options of sequences. A reload needs no log.
func sequenceOptions(cfg *conf.Config, files *tlsfiles.Store, log *zap.Logger) (sequence.Options, error) {
	q := &cfg.Sequence
	opts := sequence.Options{
		Tuning:     sequenceTuning(cfg),
		StateDir:   q.StateDir,
		Durability: string(q.Durability),
		Logger:     log,
		Interleave: string(q.Interleave),
		Block:      uint64(q.Block),
	}
	if q.WorkerID >= 0 {
		worker := uint64(q.WorkerID)
		opts.WorkerID = &worker
	}
	for _, server := range q.Servers {
		security, err := secured(files, sequenceServerFiles, server.Security, server.Addresses()...)
		if err != nil {
			return opts, err
		}
		o := sequence.ServerOptions{
			User: server.User, Password: server.Password.Reveal(), Database: server.Database, Table: q.Table, Security: security,
		}
		if len(server.Nodes) == 0 {
			o.Network, o.Addr = server.Address.Split()
		}
		for _, node := range server.Nodes {
			network, address := node.Split()
			o.Nodes = append(o.Nodes, sequence.Node{Network: network, Addr: address})
		}
		opts.Servers = append(opts.Servers, o)
	}
	return opts, nil
}

// accountsOf returns the accounts on the sequence servers.
func accountsOf(o *sequence.Options) (all []sequence.Account) {
	for _, s := range o.Servers {
		all = append(all, sequence.Account{User: s.User, Password: s.Password, Security: s.Security})
	}
	return all
}

// sequenceTuning returns the options that can change while the proxy runs.
func sequenceTuning(cfg *conf.Config) sequence.Tuning {
	q := &cfg.Sequence
	return sequence.Tuning{
		CacheSize: uint64(q.Cache),
		// 0 would mean the default. This value never asks for more than Cache.
		OutageCover:     max(q.OutageCover.D(), time.Nanosecond),
		AllocateTimeout: q.AllocateTimeout.D(),
		CreateUnknown:   cfg.UnknownSequence == conf.UnknownSequenceCreate,

		CreateTable:         q.CreateTable,
		OrderWithoutReplica: !q.OrderRequiresReplica,
		NoDirectWriters:     !q.DirectWriters,
	}
}

// secured reads the files that secure connections to servers. It returns nil for plain connections.
func secured(files *tlsfiles.Store, name string, s conf.Security, addresses ...conf.Address) (*tlsfiles.Client, error) {
	if !s.Needed(addresses...) {
		return nil, nil
	}
	c, err := files.Client(name, s.Files(addresses...))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// The uses of files, for messages.
const (
	clientFiles         = "tls"
	sequenceServerFiles = "sequence server"
)

func shardFiles(s *conf.Shard) string { return "shard " + s.Name }

// fileUses returns all uses for which the functions here read files.
func fileUses(cfg *conf.Config) (uses []tlsfiles.Use) {
	add := func(name string, s conf.Security, addresses ...conf.Address) {
		if s.Needed(addresses...) {
			uses = append(uses, tlsfiles.Use{Name: name, Files: s.Files(addresses...)})
		}
	}
	for _, server := range cfg.Sequence.Servers {
		add(sequenceServerFiles, server.Security, server.Addresses()...)
	}
	for i := range cfg.Shards {
		s := &cfg.Shards[i]
		add(shardFiles(s), s.Security, s.Addresses()...)
	}
	if cfg.TLS.Configured() {
		uses = append(uses, tlsfiles.Use{Name: clientFiles, Files: cfg.TLS.Files()})
	}
	return uses
}

// shardOptions returns the configured shards.
func shardOptions(cfg *conf.Config, files *tlsfiles.Store, log *zap.Logger) (backend.Options, error) {
	opts := backend.Options{
		Default:        cfg.DefaultShard,
		ConnectTimeout: cfg.ConnectTimeout.D(),
		Logger:         log,
	}
	if len(cfg.Users) > 0 {
		u := &cfg.Users[0]
		opts.Probe = backend.Credentials{User: u.Name, Password: u.Password.Reveal(), OtherPassword: u.OldPassword.Reveal()}
	}
	for i := range cfg.Shards {
		s := &cfg.Shards[i]
		o := backend.ShardOptions{Name: s.Name, Schemas: s.Schemas}
		if s.User != "" {
			o.Login = &backend.Credentials{User: s.User, Password: s.Password.Reveal()}
		}
		for _, n := range s.Nodes {
			o.Nodes = append(o.Nodes, string(n.Address))
			// The account for sequences exists on this server for certain; a user's may not.
			for _, server := range cfg.Sequence.Servers {
				if slices.Contains(server.Addresses(), n.Address) && s.User == "" {
					o.Probe = backend.Credentials{User: server.User, Password: server.Password.Reveal()}
				}
			}
		}
		var err error
		if o.Security, err = secured(files, shardFiles(s), s.Security, s.Addresses()...); err != nil {
			return opts, err
		}
		opts.Shards = append(opts.Shards, o)
	}
	return opts, nil
}

// serverOptions returns the configured options of the server.
func serverOptions(cfg *conf.Config, files *tlsfiles.Store, sequences *sequence.Sequences) (proxy.Options, error) {
	opts := proxy.Options{
		KeyOptions: proxy.KeyOptions{
			MultiRowFirst:     cfg.MultiRow == conf.MultiRowFirst,
			LastInsertIDExact: cfg.LastInsertID == conf.LastInsertIDExact,
			Tickets:           ticketTables(cfg, sequences),
		},
		AccountOptions:   proxy.AccountOptions{AdminAddressOnly: !cfg.Admin.DataPort},
		TransportOptions: proxy.TransportOptions{Compression: cfg.Compression},
		LoginOptions: proxy.LoginOptions{
			MaxConnections:     cfg.MaxConnections,
			MaxUserConnections: cfg.MaxUserConnections,
			MaxLogins:          cfg.MaxLogins,
			FailedLogins:       cfg.FailedLogins,
			FailedLoginDelay:   cfg.FailedLoginDelay.D(),
			LoginTimeout:       cfg.LoginTimeout.D(),
		},
		StatementOptions: proxy.StatementOptions{
			WriteTimeout:    cfg.WriteTimeout.D(),
			SlowStatement:   cfg.Log.SlowStatement.D(),
			PauseTimeout:    cfg.PauseTimeout.D(),
			MaxStatement:    int(cfg.MaxStatement),
			StatementMemory: int64(cfg.StatementMemory),
		},
	}
	if cfg.UnknownUser == conf.UnknownUserBackend {
		opts.RelayLogins, opts.Admins, opts.Monitors = true, cfg.AdminUsers, cfg.MonitorUsers
	}
	switch cfg.UnknownSequence {
	case conf.UnknownSequenceCreate:
		opts.Unknown = proxy.UnknownCreate
	case conf.UnknownSequenceRelay:
		opts.Unknown = proxy.UnknownRelay
	}
	for _, b := range cfg.Binds {
		schema, table, column, err := b.Column.Split()
		if err != nil {
			return opts, fmt.Errorf("bind %q: %w", b.Column, err)
		}
		opts.Bindings = append(opts.Bindings, proxy.Binding{Schema: schema, Table: table, Column: column, Sequence: b.Sequence})
	}
	for i := range cfg.Users {
		u := &cfg.Users[i]
		opts.Users = append(opts.Users, proxy.User{
			Name: u.Name, Password: u.Password.Reveal(), OldPassword: u.OldPassword.Reveal(), Schema: u.Schema, Admin: cfg.IsAdmin(u.Name), Monitor: cfg.IsMonitor(u.Name),
			MaxConnections: u.MaxConnections, Sequences: u.Sequences,
			Require: protocol.Requirement{
				TLS: u.RequireTLS, Certificate: u.NeedsCertificate(), Subject: u.CertificateSubject, Issuer: u.CertificateIssuer,
			},
		})
	}
	var err error
	if opts.ProxyProtocolFrom, err = prefixes("proxy_protocol_from", cfg.ProxyProtocolFrom); err != nil {
		return opts, err
	}
	if opts.FailedLoginExempt, err = prefixes("failed_login_exempt", cfg.FailedLoginExempt); err != nil {
		return opts, err
	}
	opts.RequireTLS = cfg.TLS.Required
	if cfg.TLS.Configured() {
		if opts.TLS, err = files.Server(clientFiles, cfg.TLS.Files()); err != nil {
			return opts, fmt.Errorf("tls: %w", err)
		}
	}
	return opts, nil
}

// prefixes returns the networks of a key.
func prefixes(key string, networks []conf.Network) (all []netip.Prefix, err error) {
	for _, n := range networks {
		prefix, err := n.Prefix()
		if err != nil {
			return nil, fmt.Errorf("%s: %w, is %q", key, err, n)
		}
		all = append(all, prefix)
	}
	return all, nil
}

// ticketTables returns the tables of [[ticket]]. Without a shard there are no schemas, so the name
// of the sequence table means that table in every schema.
func ticketTables(cfg *conf.Config, sequences *sequence.Sequences) (tables []proxy.TicketTable) {
	for _, ticket := range cfg.Tickets {
		schema, table := ticket.Names()
		if !cfg.IsSequenceTable(schema, table) {
			tables = append(tables, proxy.TicketTable{
				Schema: schema, Table: table, Name: ticket.Table, Counter: sequences.TicketTable(schema, table),
			})
			continue
		}
		schema = cfg.Sequence.Servers[0].Database
		if len(cfg.Shards) == 0 {
			schema = ""
		}
		tables = append(tables, proxy.TicketTable{Schema: schema, Table: table})
	}
	return tables
}
