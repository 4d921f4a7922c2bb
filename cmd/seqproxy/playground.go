package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"seqproxy/conf"
	"seqproxy/internal/mysqld"
	"seqproxy/sequence"
)

// playground starts two private servers and a proxy in front of them. It stops all three when ctx
// is cancelled.
func (p *program) playground(ctx context.Context, args []string) (err error) {
	c := newCommand("playground")
	listen := c.String("listen", "127.0.0.1:4306", "`HOST:PORT` for clients; loopback only, since root has no password")
	adminListen := c.String("admin-listen", "127.0.0.1:4307", "`HOST:PORT` where the proxy itself is asked; loopback only")
	httpListen := c.String("http-listen", "127.0.0.1:4308", "`HOST:PORT` of metrics and health; loopback only")
	path := c.String("server", "", "`PATH` of mariadbd or mysqld; default: found in PATH")
	dir := c.String("dir", "", "`DIR` that keeps the servers' data between runs; default: a directory that is removed at the end")
	members := c.Int("sequence-servers", 1, "`N` servers that divide the numbers of the sequences, 1 to 5")
	show := c.Bool("demo", false, "take keys and insert rows while one server after another is killed and started again, and show how it goes")
	period := c.Duration("for", 0, "`TIME` after which the demo ends, as 30s; 0: at Ctrl-C")
	if err := c.parse(args, p.out); err != nil {
		return err
	}
	if *members < 1 || *members > 5 {
		return usagef("-sequence-servers must be 1 to 5, is %d", *members)
	}
	if *period != 0 && !*show || *period < 0 {
		return usagef("-for is the time of a -demo, as in -demo -for 30s")
	}
	if err := noMore("playground", c.Args()); err != nil {
		return err
	}
	if err := loopbackOnly("listen", *listen); err != nil {
		return err
	}
	if err := canListen(ctx, *listen); err != nil { // before anything is started
		return listenError(*listen, err)
	}
	if !c.given("admin-listen") {
		*adminListen = secondAddress(*listen, *adminListen)
	}
	if err := loopbackOnly("admin-listen", *adminListen); err != nil {
		return err
	}
	if err := canListen(ctx, *adminListen); err != nil {
		return adminListenError(*adminListen, err)
	}
	if !c.given("http-listen") {
		*httpListen = secondAddress(*listen, *httpListen)
	}
	if err := loopbackOnly("http-listen", *httpListen); err != nil {
		return err
	}
	if err := canListen(ctx, *httpListen); err != nil {
		return httpListenError(*httpListen, err)
	}
	binary, err := findServer(*path)
	if err != nil {
		return err
	}
	home, err := newHome(*dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.close()) }()

	p.say("Starting %d private servers (%s) ...\n", max(*members, len(exampleSchemas)), binary)
	servers, err := startServers(ctx, binary, home, *members)
	if err != nil {
		return p.unlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, stopServers(p.hurry, servers)) }()
	certificate, err := home.certificate()
	if err != nil {
		return err
	}
	logTo := conf.LogStderr
	if *show { // the demo uses the screen
		logTo = filepath.Join(home.dir, "proxy.log")
	}
	r, err := startInFront(ctx, addresses{*listen, *adminListen, *httpListen}, logTo, home, certificate, servers, *members)
	if err != nil {
		return p.unlessEnded(ctx, err)
	}
	if *show {
		p.say("Clients: %s; admin: %s; metrics: http://%s/metrics; log: %s\n", r.server.Addr(), r.adminAddress(), r.httpAddress(), logTo)
		err = p.demo(ctx, r, servers, *members, *period)
	} else {
		p.welcome(addresses{r.server.Addr().String(), r.adminAddress(), r.httpAddress()}, certificate.CertFile, home, servers, *members)
		err = p.play(ctx, r, servers, *members)
	}
	if err == nil {
		p.say("\nStopped the proxy; stopping its servers.\n")
	}
	return err
}

// play runs until ctx is cancelled. It restarts a killed server after a while. If it cannot, it
// stops the playground in order.
func (p *program) play(ctx context.Context, r *running, servers []*mysqld.Server, members int) error {
	life, end := context.WithCancelCause(ctx)
	var watchers sync.WaitGroup
	for i, s := range servers {
		watchers.Go(func() {
			if err := p.revive(life, s, holds(i, members)); err != nil {
				end(err)
			}
		})
	}
	err := r.wait(life, p.hurry, nil, nil)
	if ctx.Err() == nil && life.Err() != nil {
		err = errors.Join(err, context.Cause(life))
	}
	end(nil)
	watchers.Wait()
	return err
}

// addresses are the playground's listening addresses.
type addresses struct{ clients, admin, http string }

// unlessEnded hides an error if the user has cancelled the start.
func (p *program) unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	p.say("\nStopped before everything was ready.\n")
	return nil
}

// startInFront starts the proxy in front of the servers, with the example sequence.
func startInFront(ctx context.Context, at addresses, logTo string, home home, certificate conf.TLS, servers []*mysqld.Server, members int) (*running, error) {
	cfg, err := playgroundConfig(at, certificate, servers, members)
	if err != nil {
		return nil, err
	}
	cfg.Log.Output = logTo
	cfg.Sequence.StateDir = filepath.Join(home.dir, "state")
	log, err := openLog(cfg.Log) // open until the program ends
	if err != nil {
		return nil, err
	}
	if err := divideNumbers(ctx, cfg, log.Logger()); err != nil {
		return nil, fmt.Errorf("divide the numbers among the sequence servers: %w", err)
	}
	r, err := start(ctx, cfg, func() (*conf.Config, error) { return cfg, nil }, log)
	if err != nil {
		return nil, err
	}
	if _, err := r.sequences.Create(ctx, sequence.CreateOptions{Name: exampleSequence, IfNotExists: true}); err != nil {
		return nil, errors.Join(fmt.Errorf("create the example sequence: %w", err), r.abandon(ctx))
	}
	return r, nil
}

// divideNumbers adds further sequence servers to the first one. It skips servers that were added in
// an earlier playground of the same home.
func divideNumbers(ctx context.Context, cfg *conf.Config, log *zap.Logger) (err error) {
	all := cfg.Sequence.Servers
	if len(all) == 1 {
		return nil
	}
	first := sequence.ServerOptions{User: all[0].User, Database: all[0].Database}
	first.Network, first.Addr = all[0].Address.Split()
	s, err := sequence.New(sequence.Options{Servers: []sequence.ServerOptions{first}, Tuning: sequence.Tuning{CreateTable: true, NoDirectWriters: true}, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	members, err := s.SequenceServers(ctx)
	if err != nil || members[0].Plan > 0 {
		return err
	}
	for _, other := range all[1:] {
		_, address := other.Address.Split()
		if _, err := s.ChangePlan(ctx, sequence.PlanChange{Add: address}); err != nil {
			return err
		}
	}
	return nil
}

// playgroundConfig returns the playground's configuration. The first members servers divide the
// numbers.
func playgroundConfig(at addresses, certificate conf.TLS, servers []*mysqld.Server, members int) (*conf.Config, error) {
	cfg := conf.Default()
	cfg.Listen, cfg.Admin.Listen, cfg.HTTP.Listen, cfg.TLS = at.clients, at.admin, at.http, certificate
	cfg.Users = []conf.User{{Name: "root"}}
	cfg.AdminUsers = []string{"root"}
	cfg.UnknownUser = conf.UnknownUserBackend // so CREATE USER on the server is enough
	cfg.DefaultShard = shardName(0)
	cfg.Log.Level = "warn"
	cfg.Drain.Timeout = conf.Duration(5 * time.Second)
	for _, s := range servers[:members] {
		cfg.Sequence.Servers = append(cfg.Sequence.Servers, conf.SequenceServer{
			Address: conf.Address(s.Addr()), User: sequenceUser, Database: cfg.Sequence.Database,
		})
	}
	cfg.Tickets = []conf.Ticket{{Table: cfg.Sequence.Table}}
	for i, s := range servers[:len(exampleSchemas)] {
		cfg.Shards = append(cfg.Shards, conf.Shard{
			Name:    shardName(i),
			Schemas: []string{exampleSchemas[i]},
			Nodes:   []conf.Node{{Address: conf.Address(s.Addr())}},
		})
	}
	return cfg, cfg.Validate()
}

// loopbackOnly refuses an address that others can reach, since the servers have no passwords.
func loopbackOnly(flag, listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return usagef("-%s must be HOST:PORT such as 127.0.0.1:4306, is %q", flag, listen)
	}
	if host == "localhost" {
		return nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return usagef("-%s must be a loopback address such as 127.0.0.1 or [::1], since the playground's root has no password; is %q", flag, listen)
	}
	return nil
}

// canListen finds out early whether a port is taken.
func canListen(ctx context.Context, listen string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	return l.Close()
}
