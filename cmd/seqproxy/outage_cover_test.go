package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/test/mysqltest"
)

// coverEnv is the environment variable with the outage cover for TestKeysFlowForTheWholeCover,
// "15m". If it is set, the rate is measured for that long, too.
const coverEnv = "SEQPROXY_TEST_OUTAGE_COVER"

// flow is a client that takes keys of one sequence at a steady rate.
type flow struct {
	name  string
	rate  int // per second
	c     *sql.Conn
	taken atomic.Int64

	last uint64          // used by the goroutine that takes keys
	keys map[uint64]bool // all keys, used likewise
}

// take takes a key. It must be new and higher than the one before.
func (f *flow) take() error {
	var key uint64
	if err := f.c.QueryRowContext(context.Background(), "SELECT NEXTVAL('"+f.name+"')").Scan(&key); err != nil {
		return err
	}
	if key <= f.last || f.keys[key] {
		return fmt.Errorf("%s: got the key %d after %d, among %d keys", f.name, key, f.last, len(f.keys))
	}
	f.last, f.keys[key] = key, true
	f.taken.Add(1)
	return nil
}

// steadily takes keys at the rate until enough. After a delay it catches up.
func (f *flow) steadily(enough func() bool) error {
	begin, before := time.Now(), f.taken.Load()
	for !enough() {
		if err := f.take(); err != nil {
			return fmt.Errorf("%s, key %d: %w", f.name, f.taken.Load(), err)
		}
		time.Sleep(time.Until(begin.Add(time.Duration(f.taken.Load()-before) * time.Second / time.Duration(f.rate))))
	}
	return nil
}

// outage is a proxy with its sequence servers and clients.
type outage struct {
	*asked
	metered *metered
	servers []*mysqltest.Server
	flows   []*flow
	dba     *sql.Conn // connection to the admin address
	cover   time.Duration
}

// startOutage starts a proxy with sequence servers. rest is added to its [sequence].
func startOutage(t *testing.T, servers int, cover time.Duration, rest string, rates map[string]int) *outage {
	t.Helper()
	o := &outage{cover: cover}
	for range servers {
		o.servers = append(o.servers, mysqltest.Start(t))
	}
	text := apart + fmt.Sprintf(`admin_users = ["dba"]
[[user]]
name = "dba"
[[user]]
name = "app"
[sequence]
outage_cover = %q
%s
`, cover, rest)
	for i, s := range o.servers {
		if i > 0 {
			first := begin(t, "-config", write(t, "divided.toml", text))
			if output, err := client(t, first.address(), "dba", "", append(plain(t), "-e", "SEQPROXY ADD SEQUENCE SERVER '"+s.Addr()+"' WITH DIRECT WRITERS STOPPED")...); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			first.signal(syscall.SIGTERM)
			first.end(0)
		}
		text += sequencesAt(s.Addr())
	}
	o.asked = &asked{file: write(t, "seqproxy.toml", text)}
	o.begins(t)
	for name, rate := range rates {
		must(t, o.dba, "CREATE SEQUENCE "+name)
		o.flows = append(o.flows, &flow{name: name, rate: rate, c: o.connect(o.address, "app", "", nil), keys: make(map[uint64]bool)})
	}
	return o
}

// begins starts the proxy.
func (o *outage) begins(t *testing.T) {
	t.Helper()
	o.process = begin(t, "-config", o.file)
	o.address, o.admin = o.process.address(), o.process.adminAddress()
	o.metered = &metered{t: t, clients: o.address, http: o.process.httpAddress()}
	o.dba = o.connect(o.admin, "dba", "", nil)
}

// aMinutes takes the numbers of a minute at once, few at a time. The measured rates are then those
// of steady use.
func (o *outage) aMinutes(few int) {
	for _, f := range o.flows {
		for range 60 * f.rate / few {
			must(o.t, f.c, fmt.Sprintf("SELECT NEXTVAL('%s', %d)", f.name, few))
		}
	}
}

// number returns a column of SHOW SEQUENCES for a sequence.
func (o *outage) number(row map[string]string, column string) float64 {
	o.t.Helper()
	n, err := strconv.ParseFloat(row[column], 64)
	if err != nil {
		o.t.Fatalf("%s: %s is %q", row["name"], column, row[column])
	}
	return n
}

// row returns what SHOW SEQUENCES says about a flow's sequence: numbers in memory, for how many
// seconds, at which rate. These three must agree. All are 0 before the first number.
func (o *outage) row(all answer, f *flow) (cached, remaining, rate float64) {
	o.t.Helper()
	row := all.find(o.t, "name", f.name)
	if row["seconds_left"] == "NULL" {
		return 0, 0, 0
	}
	cached, remaining, rate = o.number(row, "cached"), o.number(row, "seconds_left"), o.number(row, "rate")
	if wrong := math.Abs(remaining*rate - cached); wrong > 0.06*(remaining+rate)+1 {
		// rate and seconds are rounded to one decimal
		o.t.Errorf("%s: got %v seconds for %v numbers at %v a second", f.name, remaining, cached, rate)
	}
	return cached, remaining, rate
}

// awaitFilled waits until memory has all numbers for the cover and a few seconds more, at a rate
// that is measured well.
func (o *outage) awaitFilled(limit time.Duration) {
	o.t.Helper()
	begin, spare := time.Now(), min(o.cover/2, 5*time.Second).Seconds()
	filled := make(map[string]bool)
	for deadline := begin.Add(limit); ; time.Sleep(50 * time.Millisecond) {
		all, missing := inquire(o.t, o.dba, false, "SHOW SEQUENCES"), ""
		for _, f := range o.flows {
			cached, remaining, rate := o.row(all, f)
			if cached < float64(f.rate)*(o.cover.Seconds()+spare) || remaining < o.cover.Seconds() || 1.1*rate < float64(f.rate) {
				missing += fmt.Sprintf("%s: %v are cached, for %v s at %v a second, want %d a second for %v\n", f.name, cached, remaining, rate, f.rate, o.cover)
			}
			if !filled[f.name] && cached >= float64(f.rate)*o.cover.Seconds() {
				filled[f.name] = true
				o.t.Logf("%s: %v numbers were cached for the first time %.0f s after the first", f.name, cached, time.Since(begin).Seconds())
			}
		}
		if missing == "" {
			o.t.Logf("the rate is known and the cover held %.0f s after the first number", time.Since(begin).Seconds())
			return
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("after %v the cache is below the cover:\n%s", limit, missing)
		}
	}
}

// waits returns the counts of calls that found no number in memory, and of those that got none at
// all.
func (o *outage) waits() series {
	o.t.Helper()
	return o.metered.read().family("sequence_wait_seconds_count", "sequence_waits_failed_total")
}

// of returns a metric of a flow's sequence.
func (f *flow) of(all series, metric string) float64 {
	return all["sequence_"+metric+`{sequence="`+f.name+`"}`]
}

// TestKeysFlowForTheWholeCover kills all sequence servers under a steady load. For the whole
// outage_cover nobody waits, and the time shown for the numbers is right. After that the error says
// why. When the servers are back, so are the keys.
func TestKeysFlowForTheWholeCover(t *testing.T) {
	if testing.Short() {
		t.Skip("CI runs it: ten seconds without a sequence server")
	}
	const few = 100 // numbers per block and least reservation: what is in memory depends on the rates
	cover, long, rest := 10*time.Second, false, fmt.Sprintf("allocate_timeout = \"5s\"\nblock = %d\ncache = %[1]d", few)
	rates := map[string]int{"photos": 60, "videos": 30, "tags": 10}
	if text := os.Getenv(coverEnv); text != "" {
		var err error
		if cover, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", coverEnv, err)
		}
		long, rest, rates = true, "allocate_timeout = \"5s\"", map[string]int{"photos": 300, "videos": 150, "tags": 50}
	}
	o := startOutage(t, 2, cover, rest, rates)
	if !long {
		o.aMinutes(few)
	}

	// After the kill, each client takes as many keys as its rate gives during the cover.
	until := make(map[*flow]*atomic.Int64)
	var clients sync.WaitGroup
	ended := make([]error, len(o.flows))
	for i, f := range o.flows {
		last := new(atomic.Int64)
		last.Store(math.MaxInt64)
		until[f] = last
		clients.Go(func() { ended[i] = f.steadily(func() bool { return f.taken.Load() >= last.Load() }) })
	}
	stop := func() {
		for _, f := range o.flows {
			until[f].Store(0)
		}
		clients.Wait()
	}
	t.Cleanup(stop)
	o.awaitFilled(cover + 5*time.Minute)
	warm := o.waits()
	for _, s := range o.servers {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	killed, taken := time.Now(), make(map[*flow]int64)
	for _, f := range o.flows {
		taken[f] = f.taken.Load()
		until[f].Store(taken[f] + int64(float64(f.rate)*cover.Seconds()))
	}
	away := make(series)
	for _, s := range o.servers {
		away[`sequence_server_up{server="`+s.Addr()+`"}`] = 0
	}
	base := o.metered.awaits("the servers are away", away)
	finished := make(chan struct{})
	go func() { clients.Wait(); close(finished) }()
	o.during(base, killed, taken, finished)
	if err := errors.Join(ended...); err != nil {
		t.Fatalf("an error within the cover: %v", err)
	}
	if got := o.waits().since(warm); len(got) > 0 {
		t.Errorf("calls waited within the cover: %v", got)
	}
	for _, f := range o.flows {
		n := f.taken.Load() - taken[f]
		t.Logf("%s: %d keys in %.1f s with no sequence server, %.1f a second", f.name, n, time.Since(killed).Seconds(), float64(n)/time.Since(killed).Seconds())
	}
	for _, f := range o.flows {
		o.runsOut(f)
	}
	o.heals()
}

// during watches the shown values while numbers are used up, until the clients have finished.
// Memory must lack exactly the numbers given since base.
func (o *outage) during(base series, killed time.Time, taken map[*flow]int64, finished <-chan struct{}) {
	o.t.Helper()
	every := max(o.cover/10, 500*time.Millisecond)
	for last := false; !last; {
		select {
		case <-finished:
			last = true
		case <-time.After(every):
		}
		all, shown := o.metered.read(), inquire(o.t, o.dba, false, "SHOW SEQUENCES")
		for _, f := range o.flows {
			total := f.of(base, "cached_numbers") + f.of(base, "numbers_given_total")
			if got := f.of(all, "cached_numbers") + f.of(all, "numbers_given_total"); got != total {
				o.t.Errorf("%s: got %v numbers given or cached, want %v as in the beginning", f.name, got, total)
			}
			seconds, scraped := f.of(all, "cover_seconds"), f.of(all, "cached_numbers")
			cached, remaining, rate := o.row(shown, f)
			if cached > scraped || seconds <= 0 || seconds > scraped/rate*2 {
				o.t.Errorf("%s: got %v numbers for %v s in /metrics, then %v for %v s in SHOW SEQUENCES", f.name, scraped, seconds, cached, remaining)
			}
			o.t.Logf("%6.1f s: %-6s %6d given since the kill, %6.0f cached, seconds_left %6.1f", time.Since(killed).Seconds(), f.name, f.taken.Load()-taken[f], cached, remaining)
		}
	}
}

// runsOut takes the rest of a sequence. All numbers in memory are given, and then the error names
// the sequence and the reason.
func (o *outage) runsOut(f *flow) {
	t := o.t
	t.Helper()
	cached := f.of(o.metered.read(), "cached_numbers")
	before, begin := f.taken.Load(), time.Now()
	var err error
	for err == nil {
		begin = time.Now()
		err = f.take()
	}
	took := time.Since(begin)
	if got := float64(f.taken.Load() - before); got != cached {
		t.Errorf("%s: got %v numbers, want the %v that were cached", f.name, got, cached)
	}
	var refusal *mysql.MySQLError
	if !errors.As(err, &refusal) || refusal.Number != 1105 {
		t.Fatalf("%s: got %v after %v, want error 1105", f.name, err, took)
	}
	for _, part := range []string{`sequence "` + f.name + `"`, "its sequence server is unavailable (waited ", "try again"} {
		if !strings.Contains(refusal.Message, part) {
			t.Errorf("%s: got %q, want %q in it", f.name, refusal.Message, part)
		}
	}
	t.Logf("%s: after %d more, and %v of waiting: %v", f.name, f.taken.Load()-before, took.Round(time.Millisecond), err)
	o.metered.awaits("no number of "+f.name, series{
		`sequence_cached_numbers{sequence="` + f.name + `"}`:       0,
		`sequence_cover_seconds{sequence="` + f.name + `"}`:        0,
		`sequence_waits_failed_total{sequence="` + f.name + `"}`:   1,
		`sequence_rewinds_total{sequence="` + f.name + `"}`:        0,
		`sequence_server_up{server="` + o.servers[0].Addr() + `"}`: 0,
	})
	row := inquire(t, o.dba, false, "SHOW SEQUENCES").find(t, "name", f.name)
	want(t, f.name+" with no number left", row, map[string]string{"cached": "0", "seconds_left": "0.0"})
	if status, body := get(t, o.metered.http, "/readyz?sequence="+f.name); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz of %s with no number left: got %d %s", f.name, status, body)
	}
}

// heals starts the servers again. Keys are given at once, and memory has the numbers for the cover
// again. Nothing is done to the proxy.
func (o *outage) heals() {
	t := o.t
	t.Helper()
	for _, s := range o.servers {
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	for _, f := range o.flows {
		for err := f.take(); err != nil; err = f.take() {
			if time.Since(begin) > patience {
				t.Fatalf("%s: with the servers back: %v", f.name, err)
			}
		}
		t.Logf("%s: a key %.1f s after the servers were back", f.name, time.Since(begin).Seconds())
	}
	var enough atomic.Bool
	var clients sync.WaitGroup
	ended := make([]error, len(o.flows))
	for i, f := range o.flows {
		clients.Go(func() { ended[i] = f.steadily(enough.Load) })
	}
	defer clients.Wait()
	defer enough.Store(true)
	o.awaitFilled(patience)
	enough.Store(true)
	clients.Wait()
	if err := errors.Join(ended...); err != nil {
		t.Errorf("with the servers back: %v", err)
	}
	back := make(series)
	for _, s := range o.servers {
		back[`sequence_server_up{server="`+s.Addr()+`"}`] = 1
	}
	o.metered.awaits("the servers are back", back)
	for _, f := range o.flows {
		if _, body := get(t, o.metered.http, "/readyz?sequence="+f.name); !strings.Contains(body, "true") {
			t.Errorf("/readyz of %s: got %s", f.name, body)
		}
	}
	o.process.awaitCount("reserving numbers works again", len(o.flows))
}

// TestAKilledProxyLosesWhatItHeld: kill -9 of a steadily used proxy leaves a gap of exactly the
// numbers in its memory. These are no more than docs/operations.md says.
func TestAKilledProxyLosesWhatItHeld(t *testing.T) {
	const few, rate, cover = 10, 50, time.Minute
	o := startOutage(t, 1, cover, fmt.Sprintf("allocate_timeout = \"1m\"\ncache = %d", few), map[string]int{"photos": rate})
	o.aMinutes(few)
	f := o.flows[0]
	var enough atomic.Bool
	used := make(chan error, 1)
	go func() { used <- f.steadily(enough.Load) }()
	o.awaitFilled(patience)
	enough.Store(true)
	if err := receive(t, "the end of the client", used); err != nil {
		t.Fatal(err)
	}
	db, cached, size := o.servers[0].DB(t, "seqproxy"), 0.0, 0.0
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		// a reservation may be on its way
		all, id := o.metered.read(), 0.0
		cached, size = f.of(all, "cached_numbers"), f.of(all, "cache_size")
		if err := db.QueryRowContext(t.Context(), "SELECT id FROM sequence WHERE name = 'photos'").Scan(&id); err != nil {
			t.Fatal(err)
		}
		if id == float64(f.last)+cached {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got the last number %d, %v cached and the row at %v, which do not add up", f.last, cached, id)
		}
	}
	if cached > 2*size || size > 1.5*1.1*rate*cover.Seconds() {
		t.Errorf("got %v cached numbers in segments of %v, want two segments at most, of the rate times the cover and a tenth", cached, size)
	}
	o.signal(syscall.SIGKILL)
	o.end(-1)
	last := f.last
	o.begins(t)
	f.c = o.connect(o.address, "app", "", nil)
	if err := f.take(); err != nil {
		t.Fatal(err)
	}
	if lost := float64(f.last - last - 1); lost != cached {
		t.Errorf("got a gap of %v numbers, want the %v that were cached", lost, cached)
	}
	t.Logf("%d keys a second, %v of cover: %v numbers were lost", rate, cover, cached)
}
