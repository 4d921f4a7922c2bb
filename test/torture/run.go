package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"seqproxy/internal/mysqld"
)

// Options configure a run. Server and Seqproxy are required.
type Options struct {
	Seed     uint64
	Time     time.Duration // duration of the faults; starting, healing and checks come on top
	Least    int           // as many different faults, or all, even if a busy machine needs up to three times Time for them
	Proxies  int           // 0 is 3
	Estate   string        // the sequence servers, one of Estates; "": the seed chooses
	Seqproxy string        // the program
	Server   mysqld.Binary
	Only     *regexp.Regexp // names of the faults; nil is all
	Pause    time.Duration  // between the requests of a client, on average; 0 is 20 ms
	Dir      string         // an empty directory for data and logs; the caller removes it
	Progress io.Writer      // is told what happens; nil: nothing is written

	// For scenarios without chance.
	cache    string // of all proxies, "5/0s"; "": rng chooses
	keysOnly bool   // no shards
}

// healWithin is how long everything may take to work again after the last fault. The longest wait
// in it is that of the proxy for an answer of the sequence server (5 s), and then its backoff.
const healWithin = 15 * time.Second

// Run tortures an installation and returns what was seen. An error is one of the run itself, which
// then shows nothing.
func Run(ctx context.Context, o Options) (r *Report, err error) {
	if o.Proxies == 0 {
		o.Proxies = 3
	}
	if o.Pause == 0 {
		o.Pause = 20 * time.Millisecond
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(o.Progress, "%6.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	w, err := newWorld(ctx, o, o.Dir, rng)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.crashed())
		}
		err = errors.Join(err, w.close())
	}()
	if err != nil {
		return nil, err
	}
	r = &Report{Seed: o.Seed, Time: o.Time, Server: o.Server.String(), Estate: w.estate.String(), Remark: w.remark, Caches: w.caches}
	all := w.possible(kinds())
	if err = w.create(ctx, all); err != nil {
		return nil, err
	}
	if w.remark != "" {
		say("%s", w.remark)
	}
	say("%s, %d proxies (cache/cover %v), %s; clients start", w.estate, o.Proxies, w.caches, o.Server)
	asking := time.Now()
	clients := startClients(w, all, rng, o.Pause, nil)
	err = eventually(ctx, backWithin, func() error {
		if idle := clients.idle(0); len(idle) > 0 {
			return fmt.Errorf("no success before the first fault: %v", idle)
		}
		return nil
	})
	n := newNemesis(w)
	var probes []op
	var wrong []string
	if err == nil {
		say("faults begin, for %v", o.Time)
		some := chosen(o.Only, w)
		some = slices.DeleteFunc(some, func(f fault) bool { return f.takes >= o.Time })
		for _, f := range some {
			r.possible = append(r.possible, f.name)
		}
		if len(r.possible) == 0 {
			clients.end()
			return nil, fmt.Errorf("no fault is possible: those on %s that -only names, if any, take longer than %v", w.estate, o.Time)
		}
		n.rage(ctx, some, o.Time, o.Least, rng)
		if err := w.together(ctx); err != nil {
			clients.end()
			return nil, err
		}
		say("all healed; everything has to work within %v", healWithin)
		probes, wrong = w.healed(ctx, clients)
	}
	ops := append(clients.end(), probes...)
	r.asked = time.Since(asking)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	r.made = n.made
	r.count(ops)
	r.wrong(append(wrong, n.wrong...)...)
	if err := w.crashed(); err != nil {
		r.wrong("CRASH: " + err.Error())
	}
	say("%d requests; checks", len(ops))
	r.wrong(checkLeaks(ctx, w)...)
	calm, wrong, err := w.calmly(ctx, all, max(o.Time/10, 2*time.Second), clients, rng)
	if err != nil {
		return nil, err
	}
	r.wrong(wrong...)
	ops = append(ops, calm...)
	if r.sums, wrong, err = w.checkCounts(slices.Concat(ops, w.quiet.all())); err != nil {
		return nil, err
	}
	r.wrong(wrong...)
	unanswered, wrong, err := checkRows(ctx, w, ops)
	if err != nil {
		return nil, err
	}
	r.wrong(wrong...)
	if w.galera() {
		unasked, err := w.suspicions()
		if err != nil {
			return nil, err
		}
		if unasked > 0 {
			r.made["a node expelled unasked"] += unasked
		}
		if mended := w.operator.end(); mended > 0 {
			r.made["a cluster without a majority is set going again"] += mended
		}
	}
	if w.grouped() && w.group.losses > 0 {
		r.made["a replica takes over that lacks numbers which were reserved"] += w.group.losses
	}
	r.wrong(checkFailures(ops, w)...)
	r.wrong(checkKeys(slices.Concat(ops, unanswered, w.quiet.all()), w.trouble.epochs)...)
	return r, nil
}

// chosen returns the faults whose names match.
func chosen(only *regexp.Regexp, w *world) (some []fault) {
	for _, f := range faults() {
		if f.where != nil && !f.where(w) {
			continue
		}
		if only == nil || only.MatchString(f.name) {
			some = append(some, f)
		}
	}
	return some
}

// create makes the sequences that need more than a row.
func (w *world) create(ctx context.Context, all []*kind) error {
	// Each server commits in turn. Where the disk stalls, as beside another test that writes much,
	// every commit on it does, and together they may take longer than allocate_timeout.
	create := func(text string) error {
		return eventually(ctx, backWithin, func() error { return w.admin(ctx, w.proxies[0], text) })
	}
	if w.several() {
		for _, name := range sharedSequences[:3] {
			if err := create("CREATE SEQUENCE IF NOT EXISTS " + name); err != nil {
				return err
			}
		}
	}
	for _, s := range w.members[1:] {
		if err := eventually(ctx, backWithin, func() error { return w.addAgain(ctx, w.proxies[0], s) }); err != nil {
			return err
		}
	}
	for _, k := range all {
		if k.admin != "" {
			if err := create(k.admin); err != nil {
				return err
			}
		}
	}
	if !w.grouped() {
		return nil
	}
	for _, name := range w.sequences() { // the first one of each waits for a replica
		err := eventually(ctx, backWithin, func() error {
			_, err := newNemesis(w).takeOne(ctx, w.proxies[0], name)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// healed waits until every client has had a success, by any proxy, and every proxy has given a
// number of each sequence. It returns these.
func (w *world) healed(ctx context.Context, c *clients) (probes []op, wrong []string) {
	since := w.clock.now()
	err := eventually(ctx, healWithin, func() error {
		if idle := c.idle(since); len(idle) > 0 {
			return fmt.Errorf("no success for %v", idle)
		}
		return nil
	})
	if err != nil {
		wrong = append(wrong, notHealed+": "+err.Error())
	}
	n := newNemesis(w)
	for _, p := range w.proxies {
		for _, name := range w.sequences() {
			if name == restored && p.number != 0 {
				continue
			}
			o, err := n.probe(ctx, p, name)
			if err != nil {
				wrong = append(wrong, notHealed+": "+err.Error())
			}
			probes = append(probes, o)
		}
	}
	return probes, wrong
}

// Evidence copies the logs of the proxies, and of the nodes of a cluster or group, to a directory.
func Evidence(from, to string) error {
	logs, err := filepath.Glob(filepath.Join(from, "proxy*"))
	if err != nil {
		return err
	}
	servers, err := filepath.Glob(filepath.Join(from, "galera", "node*", "error.log"))
	if err != nil {
		return err
	}
	nodes, err := filepath.Glob(filepath.Join(from, "node*", "error.log"))
	if err != nil {
		return err
	}
	logs = append(append(logs, servers...), nodes...)
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, strings.ReplaceAll(strings.TrimPrefix(path, from+string(filepath.Separator)), string(filepath.Separator), "-")), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
