package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// environment is the surroundings of a measurement.
type environment struct {
	fleet  *fleet
	target *target
	timing timing
}

// runFunc makes one measurement of one contender. An error ends the contender's part in the
// workload.
type runFunc func(ctx context.Context, e environment) (figures, error)

// contender is one line of a workload's table.
type contender struct {
	name   string // label in the table, name in the JSON file
	target string // the target that is measured, one of allTargets
	run    runFunc
}

// workload is one table.
type workload struct {
	name       string // "select1_c16pin"; -only matches it
	title      string
	kind       kind
	conns      int
	pinned     bool   // client, target and server on one CPU
	fresh      bool   // every round has fresh processes
	base       string // the contender for comparison
	contenders []contender
}

// kind says which figures a workload has.
type kind int

const (
	loadKind   kind = iota // operations per second
	resultKind             // megabytes per second
	idleKind               // memory of sessions
)

// The contenders of the tables about sequences.
const (
	nextvalSeqproxy = "seqproxy NEXTVAL('photos')"
	nextvalMariaDB  = "direct NEXTVAL(photos_seq)"
	nextvalUpdate   = "direct UPDATE idiom"
	orderedSeqproxy = "seqproxy NEXTVAL, ORDER"
	insertSeqproxy  = "seqproxy, NEXTVAL"
	filledSeqproxy  = "seqproxy, filled in"
	literalSeqproxy = "seqproxy, literal"
	literalHAProxy  = "haproxy, literal"
	literalRelay    = "relay, literal"
	literalDirect   = "direct, literal"
)

// counters are the numbers of each counter in the whole run.
type counters struct {
	photos, mariadb, idiom, ordered numberSet
	kinds                           []numberSet // by the index of their clause
}

// plan lists all workloads. Those on one CPU come first and decide.
func plan(sessions int) []workload {
	given := &counters{}
	var list []workload
	for _, pinned := range []bool{true, false} {
		counts := []int{1, 16, 256}
		if pinned {
			counts = []int{1, 16}
		}
		for _, n := range counts {
			list = append(list, relayed("select1", "SELECT 1", n, pinned, newSelectOne))
		}
		for _, n := range counts {
			list = append(list, relayed("point_text", "Point select by key, text protocol", n, pinned, newPointText))
		}
		for _, n := range counts {
			list = append(list, relayed("point_prepared", "Point select by key, prepared statement", n, pinned, newPointPrepared))
		}
		list = append(list,
			relayed("pipeline", fmt.Sprintf("%d statements in one write", pipelineDepth), 4, pinned, newPipeline),
			relayed("connect", "Connect, log in, SELECT 1, quit", 8, pinned, newConnect))
		for _, n := range counts {
			list = append(list, nextval(n, pinned, given))
		}
		list = append(list, kinds(16, pinned, given))
		for _, n := range []int{1, 64} {
			list = append(list, ordered(n, pinned, given))
		}
		for _, n := range counts {
			list = append(list, insert(n, pinned, given))
		}
		list = append(list, insertPrepared(16, pinned, given))
	}
	big := bigResult{rows: 100_000, width: 1000}
	slow := big
	slow.slow = 100e6
	list = append(list,
		overTargets(workload{name: "bigresult", title: "100 MB result, read again until the time is over", kind: resultKind, conns: 1, fresh: true}, big.run),
		overTargets(workload{name: "bigslow", title: "100 MB result read at 100 MB/s", kind: resultKind, conns: 1, fresh: true}, slow.run),
		overTargets(workload{name: "rows1m", title: "1,000,000 rows of 100 bytes, read again until the time is over", kind: resultKind, conns: 1, fresh: true},
			bigResult{rows: 1_000_000, width: 100}.run),
		overTargets(workload{name: "idle", title: fmt.Sprintf("%d idle sessions, each after one SELECT 1", sessions), kind: idleKind, conns: sessions, fresh: true},
			idleSessions(sessions)))
	for i := range list {
		list[i].contenders = withBefore(list[i].contenders)
	}
	return list
}

// withBefore adds the other build behind each contender that is measured with seqproxy.
func withBefore(list []contender) []contender {
	var all []contender
	for _, c := range list {
		all = append(all, c)
		if c.target == seqproxy {
			all = append(all, contender{c.name + ", before", before, c.run})
		}
	}
	return all
}

// overTargets adds all targets as contenders with the same run.
func overTargets(w workload, run runFunc) workload {
	w.base = direct
	for _, name := range allTargets {
		w.contenders = append(w.contenders, contender{name, name, run})
	}
	return w
}

// load is a loadKind workload. Its name and title contain the number of connections and the
// pinning.
func load(name, title string, conns int, pinned bool) workload {
	w := workload{name: fmt.Sprintf("%s_c%d", name, conns), conns: conns, pinned: pinned, kind: loadKind}
	noun, where := "connections", "all CPUs"
	if conns == 1 {
		noun = "connection"
	}
	if pinned {
		w.name += "pin"
		where = "one CPU"
	}
	w.title = fmt.Sprintf("%s; %d %s, %s", title, conns, noun, where)
	return w
}

func relayed(name, title string, conns int, pinned bool, start func(context.Context, *target, timing, int) (worker, error)) workload {
	return overTargets(load(name, title, conns, pinned), loadWith(conns, start))
}

func nextval(conns int, pinned bool, given *counters) workload {
	w := load("nextval", "Numbers of a sequence", conns, pinned)
	w.base = nextvalMariaDB
	w.contenders = []contender{
		{nextvalMariaDB, direct, loadNumbers(conns, text("SELECT NEXTVAL(photos_seq)"), &given.mariadb, numberFromRow)},
		{nextvalUpdate, direct, loadNumbers(conns, text("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'idiom'"), &given.idiom, numberFromOK)},
		{nextvalSeqproxy, seqproxy, loadNumbers(conns, text("SELECT NEXTVAL('photos')"), &given.photos, numberFromRow)},
	}
	return w
}

// ordered compares ORDER numbers, for which the proxy asks the server, with the statement that asks
// the server for each number.
func ordered(conns int, pinned bool, given *counters) workload {
	w := load("ordered", "Numbers of an ORDER sequence", conns, pinned)
	w.base = nextvalUpdate
	w.contenders = []contender{
		{nextvalUpdate, direct, loadNumbers(conns, text("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'idiom'"), &given.idiom, numberFromOK)},
		{orderedSeqproxy, seqproxy, loadNumbers(conns, text("SELECT NEXTVAL('ordered')"), &given.ordered, numberFromRow)},
		{nextvalSeqproxy, seqproxy, loadNumbers(conns, text("SELECT NEXTVAL('photos')"), &given.photos, numberFromRow)},
	}
	return w
}

// insert compares an INSERT with the client's own key to one with a key from the proxy. The base is
// the relayed INSERT; the other lines give the scale.
func insert(conns int, pinned bool, given *counters) workload {
	w := load("insert", "INSERT of one row", conns, pinned)
	w.base = literalSeqproxy
	w.contenders = []contender{
		{literalDirect, direct, loadLiteralInserts(conns, false)},
		{literalHAProxy, haproxy, loadLiteralInserts(conns, false)},
		{literalRelay, relay, loadLiteralInserts(conns, false)},
		{literalSeqproxy, seqproxy, loadLiteralInserts(conns, false)},
		{insertSeqproxy, seqproxy, loadNumberedInserts(conns, "photos", insertNextval, false, &given.photos)},
		{filledSeqproxy, seqproxy, loadNumberedInserts(conns, "filled", insertFilled, false, &given.photos)},
	}
	return w
}

func insertPrepared(conns int, pinned bool, given *counters) workload {
	w := load("insert_prepared", "INSERT of one row, prepared statement", conns, pinned)
	w.base = literalSeqproxy
	w.contenders = []contender{
		{literalDirect, direct, loadLiteralInserts(conns, true)},
		{literalSeqproxy, seqproxy, loadLiteralInserts(conns, true)},
		{insertSeqproxy, seqproxy, loadNumberedInserts(conns, "photos", insertNextval, true, &given.photos)},
		{filledSeqproxy, seqproxy, loadNumberedInserts(conns, "filled", insertFilled, true, &given.photos)},
	}
	return w
}

// needsMariaDB says whether a workload needs MariaDB's sequences or its sequence engine.
func needsMariaDB(w workload) bool {
	return w.kind == resultKind || w.base == nextvalMariaDB
}

// choose returns the workloads whose name matches only, with the contenders for one of the targets.
func choose(all []workload, only *regexp.Regexp, targets []string) []workload {
	var chosen []workload
	for _, w := range all {
		if !only.MatchString(w.name) {
			continue
		}
		w.contenders = slices.DeleteFunc(slices.Clone(w.contenders), func(c contender) bool {
			return !slices.Contains(targets, c.target)
		})
		if len(w.contenders) > 0 {
			chosen = append(chosen, w)
		}
	}
	return chosen
}

// estimate is the approximate duration of a run.
func estimate(list []workload, rounds int, tm timing) time.Duration {
	const (
		startFleet  = 2 * time.Second // first start of the server with its tables
		restart     = time.Second
		perCell     = 100 * time.Millisecond // connecting, disconnecting
		perSession  = 400 * time.Microsecond
		bigTransfer = 500 * time.Millisecond // what a result goes on beyond its time
	)
	total := time.Duration(0)
	phases := map[bool]bool{}
	for _, w := range list {
		if !phases[w.pinned] {
			phases[w.pinned] = true
			total += startFleet
		}
		cell := perCell
		switch w.kind {
		case loadKind:
			cell += tm.warm + tm.measure + time.Duration(w.conns)*perSession
		case resultKind:
			cell += max(tm.measure, time.Second) + bigTransfer
		case idleKind:
			cell += 2*settleTime + time.Duration(w.conns)*perSession
		}
		round := cell * time.Duration(len(w.contenders))
		if w.fresh {
			round += restart
		}
		total += round * time.Duration(rounds)
	}
	return total
}
