package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"seqproxy/admin"
	"seqproxy/backend"
	"seqproxy/conf"
	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/internal/logs"
	"seqproxy/internal/tlsfiles"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// running is a proxy with all its parts.
type running struct {
	server    *proxy.Server
	shards    *backend.Shards
	sequences *sequence.Sequences
	files     *tlsfiles.Store // certificates and keys; read again when they change
	logs      *logs.Log
	log       *zap.Logger // the logger of logs
	ending    *ending
	reloading
	watched

	cancel context.CancelFunc // ends the background work
	wg     sync.WaitGroup     // background work and Serve

	served   chan struct{} // closed when Serve has returned
	serveErr error         // valid after served is closed
}

// start builds the parts and begins to accept clients. The caller must call wait, and then close
// out. load reads cfg again for a reload. ctx bounds only the start. A server that is down is no
// error: each part keeps trying to reach its own.
func start(ctx context.Context, cfg *conf.Config, load loader, out *logs.Log) (_ *running, err error) {
	log := out.Logger()
	r := &running{logs: out, log: log, ending: newEnding(), served: make(chan struct{}), files: tlsfiles.NewStore(log.Named("tls"))}
	r.load, r.reloaded = load, make(chan struct{}, 1)
	r.inForce.Store(cfg)
	numbers, err := sequenceOptions(cfg, r.files, log.Named("sequence"))
	if err != nil {
		return nil, err
	}
	if r.sequences, err = sequence.New(numbers); err != nil {
		return nil, fmt.Errorf("sequences: %w", err)
	}
	defer func() {
		if err != nil { // nothing was reserved
			err = errors.Join(err, r.sequences.Close(ctx))
		}
	}()
	shards, err := shardOptions(cfg, r.files, log.Named("backend"))
	if err != nil {
		return nil, err
	}
	if r.shards, err = backend.New(shards); err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	keys := protocol.NewRSAKeys()
	opts, err := serverOptions(cfg, r.files, r.sequences)
	if err != nil {
		return nil, err
	}
	opts.Shards, opts.Sequences, opts.Admin = r.shards, r.sequences, admin.NewSequences(r.sequences, r)
	opts.RSA, opts.Version, opts.Logger = keys, version, log.Named("proxy")
	r.server = proxy.New(opts)
	if err := r.listen(cfg); err != nil { // before anything is started
		return nil, err
	}
	if err := r.listenHTTP(ctx, cfg.HTTP.Listen); err != nil {
		return nil, errors.Join(err, r.server.Shutdown(ctx))
	}

	var life context.Context
	life, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.wg.Go(func() { r.prepareKeys(keys) })
	r.wg.Go(func() {
		r.awaitSequences(life)
		r.reportNumbered(life)
	})
	r.wg.Go(func() { r.files.Watch(life) })
	r.serveHTTP()
	r.shards.Open(ctx)
	r.wg.Go(func() {
		defer close(r.served)
		r.serveErr = r.server.Serve(context.WithoutCancel(ctx))
	})
	log.Info("listening", zap.Stringer("address", r.server.Addr()), zap.String("admin", r.adminAddress()),
		zap.String("http", r.httpAddress()), zap.String("version", version))
	return r, nil
}

// listen opens the configured addresses. After an error none is open.
func (r *running) listen(cfg *conf.Config) error {
	if err := r.server.Listen(cfg.Listen); err != nil {
		return listenError(cfg.Listen, err)
	}
	if cfg.Admin.Listen == "" {
		return nil
	}
	if err := r.server.ListenAdmin(cfg.Admin.Listen); err != nil {
		return errors.Join(adminListenError(cfg.Admin.Listen, err), r.server.Shutdown(context.Background()))
	}
	return nil
}

// prepareKeys makes the RSA key in advance, so that the first client without TLS need not wait. If
// that fails, that client gets the error.
func (r *running) prepareKeys(keys *protocol.RSAKeys) {
	if err := keys.Prepare(); err != nil {
		r.log.Error("RSA key not made", logfield.Err(err))
	}
}

// Pauses between attempts to reach the sequence server.
const (
	firstSequencePause = time.Second
	lastSequencePause  = 30 * time.Second
	sequencePatience   = 10 * time.Second // for one attempt
)

// awaitSequences asks the sequence server once. So the log shows at the start what the first client
// would find out later, and the table exists by then. It asks until there is an answer, and logs
// each problem once.
func (r *running) awaitSequences(ctx context.Context) {
	complaint := ""
	for pause := firstSequencePause; ; pause = min(2*pause, lastSequencePause) {
		attempt, cancel := context.WithTimeout(ctx, sequencePatience)
		_, err := r.sequences.List(attempt)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if complaint != "" {
				r.log.Info("sequence server usable")
			}
			return
		default:
			if text := withoutWait(err); text != complaint {
				complaint = text
				r.log.Warn("no numbers can be reserved", logfield.Err(err))
			}
		}
		if !await.Pause(ctx, pause) {
			return
		}
	}
}

// wait runs the proxy until ctx is cancelled or it cannot accept clients any more, and stops it.
// When hurry is done it waits for nothing. Each value of reloads, which may be nil, asks for a
// reload. Each value of rotations asks to open the log again, also while it stops, which may take
// days.
func (r *running) wait(ctx, hurry context.Context, reloads <-chan struct{}, rotations <-chan os.Signal) error {
	defer context.AfterFunc(ctx, r.ending.orderly)()
	defer context.AfterFunc(hurry, r.ending.hurry)()
	stopped := make(chan error)
	context.AfterFunc(r.ending.asked, func() { stopped <- r.stop() })
	served := r.served
	for {
		select {
		case <-rotations:
			_ = r.FlushLogs() // an error is logged
		case <-reloads:
			_, _ = r.Reload(r.ending.asked, false) // an error is logged
		case <-served:
			served = nil
			if r.ending.asked.Err() == nil { // it is not stop that ended it
				r.ending.orderly()
			}
		case err := <-stopped:
			return err
		}
	}
}

// giveBackTimeout bounds the time to give unused numbers back when the proxy stops.
const giveBackTimeout = 5 * time.Second

// stop stops the proxy: it drains, and then unused numbers go back to the table. The error is that
// of accepting clients.
func (r *running) stop() error {
	r.drain()
	r.cancel()
	r.shards.Close()
	back, cancelBack := context.WithTimeout(r.ending.now, giveBackTimeout)
	defer cancelBack()
	cached := r.sequences.Stats().Cached
	if err := r.sequences.Close(back); err != nil && cached > 0 {
		r.log.Warn("unused numbers lost", zap.Uint64("cached", cached), logfield.Err(err))
	}
	r.stopHTTP(r.ending.now)
	r.wg.Wait()
	count := r.sequences.Stats()
	returned, unknown := count.Unused[sequence.UnusedReturned], count.Unused[sequence.UnusedUnknownCommit]
	r.log.Info("stopped", zap.Uint64("reserved", count.Reserved), zap.Uint64("given", count.Given), zap.Uint64("given_back", returned),
		zap.Uint64("passed_over", count.Unused.Sum()-returned-unknown), zap.Uint64("outcome_unknown", unknown))
	return r.serveErr
}

// abandon stops a proxy that nobody has used. It does not wait after ctx is done.
func (r *running) abandon(ctx context.Context) error {
	defer context.AfterFunc(ctx, r.ending.hurry)()
	r.ending.orderly()
	return r.stop()
}

// listenError says what to do if an address cannot be used.
func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("address %s is in use: end what listens there, or choose another with -listen HOST:PORT", address)
	}
	return fmt.Errorf("%w; choose another address with -listen HOST:PORT", err)
}

// adminAddress returns the address for statements to the proxy, for people.
func (r *running) adminAddress() string {
	if admin := r.server.AdminAddr(); admin != nil {
		return admin.String()
	}
	return ""
}

// adminListenError is listenError for the admin address.
func adminListenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("admin.listen: address %s is in use: end what listens there, or choose another, or \"\" for none, by admin.listen or -admin-listen", address)
	}
	return fmt.Errorf("admin.listen: %w; choose another address, or \"\" for none, by admin.listen or -admin-listen", err)
}
