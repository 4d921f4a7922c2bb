package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/conf"
	"seqproxy/internal/logfield"
)

// loader reads the configuration again from where the proxy got it.
type loader func() (*conf.Config, error)

// reloading is the configuration of a running proxy.
type reloading struct {
	load    loader
	inForce atomic.Pointer[conf.Config]
	one     sync.Mutex // locked during a reload
	// reloaded has a value if there was a reload after which nobody has looked at bound columns
	reloaded chan struct{}

	mu      sync.Mutex
	lastAt  time.Time // the last reload; guarded by mu
	lastErr error     // guarded by mu
}

// Config returns the configuration in force. Keys that need a restart have their values from the
// start.
func (r *reloading) Config() *conf.Config { return r.inForce.Load() }

// ConfigDiff reads the configuration and returns what differs from the one in force.
func (r *reloading) ConfigDiff() ([]conf.Change, error) {
	next, err := r.load()
	if err != nil {
		return nil, err
	}
	return conf.Diff(r.Config(), next), nil
}

// LastReload returns the time and outcome of the last reload. A zero time means that there was
// none.
func (r *reloading) LastReload() (at time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastAt, r.lastErr
}

// errStopping says that a stopping proxy does not reload.
var errStopping = errors.New("the proxy is stopping")

// Reload reads and checks the configuration, connects to what is new, and puts everything in force,
// or nothing. With tlsOnly it only reads certificates and keys again. changed names the keys with
// new values or with files that were read again, and says which need a restart. It logs the
// outcome. Any goroutine may call it; only one call runs at a time.
func (r *running) Reload(ctx context.Context, tlsOnly bool) (changed []string, err error) {
	r.one.Lock()
	defer r.one.Unlock()
	if r.ending.asked.Err() != nil {
		r.log.Error("not reloaded", logfield.Err(errStopping))
		return nil, errStopping
	}
	r.notifyReloading()
	defer func() {
		if r.ending.asked.Err() == nil {
			r.notifyReady()
		}
	}()
	var restart []string
	if tlsOnly {
		changed, err = r.reloadFiles()
	} else {
		changed, restart, err = r.reloadAll(ctx)
	}
	r.reloads.Done(err)
	r.mu.Lock()
	r.lastAt, r.lastErr = time.Now(), err
	r.mu.Unlock()
	if err != nil {
		r.log.Error("not reloaded", logfield.Err(err))
		return nil, err
	}
	r.log.Info("reloaded", zap.Strings("changed", changed), zap.Strings("takes_restart", restart))
	for _, key := range restart {
		changed = append(changed, key+" (takes a restart)")
	}
	return changed, nil
}

// reloadFiles reads certificates and keys again.
func (r *running) reloadFiles() (changed []string, err error) {
	names, err := r.files.Reload()
	for _, name := range names {
		changed = append(changed, "files of "+name)
	}
	if err != nil {
		err = fmt.Errorf("certificates and keys that cannot be used were left as they were: %w", err)
	}
	return changed, err
}

// reloadAll reloads everything. restart has the keys that need a restart.
func (r *running) reloadAll(ctx context.Context) (changed, restart []string, err error) {
	before := r.Config()
	read, err := r.load()
	if err != nil {
		return nil, nil, err
	}
	cfg := conf.Reloaded(before, read)
	for _, c := range conf.Diff(before, read) {
		if c.When == conf.WhenRestart {
			restart = append(restart, c.Key)
		} else {
			changed = append(changed, c.Key)
		}
	}
	if len(restart) > 0 {
		if err := cfg.Validate(); err != nil {
			return nil, nil, fmt.Errorf("without what takes a restart (%s): %w", strings.Join(restart, ", "), err)
		}
	}
	defer func() {
		if err != nil {
			r.files.Keep(fileUses(before))
		}
	}()
	shards, err := shardOptions(cfg, r.files, nil)
	if err != nil {
		return nil, nil, err
	}
	routes, err := r.shards.Change(shards)
	if err != nil {
		return nil, nil, fmt.Errorf("shards: %w", err)
	}
	opts, err := serverOptions(cfg, r.files, r.sequences)
	if err != nil {
		return nil, nil, err
	}
	numbers, err := sequenceOptions(cfg, r.files, nil)
	if err != nil {
		return nil, nil, err
	}
	accounts := r.sequences.ChangeAccounts(accountsOf(&numbers))
	if err := errors.Join(routes.Try(ctx), accounts.Try(ctx)); err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err := r.logs.SetLevel(cfg.Log.Level); err != nil {
		return nil, nil, fmt.Errorf("log.level: %w", err)
	}

	// Nothing can fail from here on: load has just used all files that are left.
	r.files.Keep(fileUses(cfg))
	files, errFiles := r.reloadFiles()
	if errFiles != nil {
		r.log.Warn("changed certificates not used", logfield.Err(errFiles))
	}
	accounts.Apply()
	r.sequences.Tune(sequenceTuning(cfg))
	r.server.Reload(opts, routes.Apply())
	r.inForce.Store(cfg)
	known := before.Warnings()
	for _, w := range cfg.Warnings() {
		if !slices.Contains(known, w) {
			r.log.Warn("configuration", zap.String("remark", w))
		}
	}
	select {
	case r.reloaded <- struct{}{}:
	default: // one that waits there is enough
	}
	return append(changed, files...), restart, nil
}
