package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/store"
	"seqproxy/test/mysqltest"
)

// estate is a group of servers with a schema, and a link to each of them for each proxy of the
// test.
type estate struct {
	*mysqltest.Group
	schema string
	pools  []*sql.DB
}

// startEstate has a table with rows of the names, all at 0, on all n nodes.
func startEstate(t *testing.T, n int, names ...string) *estate {
	t.Helper()
	return startEstateWith(t, n, nil, names...)
}

// startEstateWith is startEstate with options of the servers.
func startEstateWith(t *testing.T, n int, args []string, names ...string) *estate {
	t.Helper()
	e := &estate{Group: mysqltest.StartGroup(t, n, args...), schema: "app"}
	statements := []string{"CREATE DATABASE app", fmt.Sprintf(store.CreateTable, "app.sequence")}
	for _, name := range names {
		statements = append(statements, "INSERT INTO app.sequence (name) VALUES ('"+name+"')")
	}
	e.Nodes[0].Exec(t, append(statements, "COMMIT")...)
	for i := range n {
		if i > 0 {
			e.CatchUp(t, i, 0)
		}
		e.pools = append(e.pools, e.Nodes[i].DB(t, "app"))
	}
	return e
}

// server is the group, named by its nodes.
func (e *estate) server() sequence.ServerOptions {
	o := sequence.ServerOptions{User: "root", Database: e.schema}
	for _, addr := range e.Addrs() {
		o.Nodes = append(o.Nodes, sequence.Node{Addr: addr})
	}
	return o
}

// member is a Sequences of the estate with links of its own.
type member struct {
	*sequence.Sequences
	links []*mysqltest.Link
	logs  *observer.ObservedLogs
	given *given
}

// given are the numbers that clients got.
type given struct {
	mu   sync.Mutex
	runs map[uint64]string // by the first number of each take of one
}

func (e *estate) join(t *testing.T, who string, all *given, change ...func(*sequence.Options)) *member {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	m := &member{logs: logs, given: all}
	server := sequence.ServerOptions{User: "root", Database: e.schema}
	for _, node := range e.Nodes {
		link := mysqltest.NewLink(t, node.Addr())
		m.links = append(m.links, link)
		server.Nodes = append(server.Nodes, sequence.Node{Addr: link.Addr()})
	}
	o := sequence.Options{Servers: []sequence.ServerOptions{server}, Tuning: sequence.Tuning{CreateTable: true, CacheSize: 10, AllocateTimeout: usualPatience}, Logger: zap.New(core)}
	quick(&o)
	for _, f := range change {
		f(&o)
	}
	s, err := sequence.New(o)
	if err != nil {
		t.Fatal(err)
	}
	m.Sequences = s
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		_ = s.Close(ctx) // servers may be cut off
		checkSums(t, s)
		if t.Failed() {
			for _, line := range logs.All() {
				t.Log(who, line.Level, line.Message, line.ContextMap())
			}
		}
	})
	return m
}

// waits changes how long the member waits for a number: less behind a failure that is meant.
func (m *member) waits(d time.Duration) { sequence.Inside(m.Sequences).Waits(d) }

// cut cuts the member off from the nodes.
func (m *member) cut(nodes ...int) {
	for _, i := range nodes {
		m.links[i].Cut()
	}
}

// take takes n numbers, one at a time, and fails if any client got one before.
func (m *member) take(t *testing.T, who, name string, n int) {
	t.Helper()
	for range n {
		number, err := m.Take(t.Context(), []byte(name), 1)
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		m.given.add(t, who, number)
	}
}

// takeOf takes one number of another sequence.
func (m *member) takeOf(t *testing.T, who, name string, all *given) {
	t.Helper()
	number, err := m.Take(t.Context(), []byte(name), 1)
	if err != nil {
		t.Fatalf("%s: %s: %v", who, name, err)
	}
	all.add(t, who, number)
}

// takeAll takes until there is an error, which it returns, or too many.
func (m *member) takeAll(t *testing.T, who, name string, atMost int) error {
	t.Helper()
	for range atMost {
		number, err := m.Take(t.Context(), []byte(name), 1000)
		if err != nil {
			return err
		}
		for i := range uint64(1000) {
			m.given.add(t, who, number+i)
		}
	}
	return nil
}

func (g *given) add(t *testing.T, who string, number uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runs == nil {
		g.runs = make(map[uint64]string)
	}
	if other, dup := g.runs[number]; dup {
		t.Errorf("number %d was given to %s, and before to %s", number, who, other)
	}
	g.runs[number] = who
}

// wantLog waits for a log line that contains text.
func (m *member) wantLog(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if m.logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, text) }).Len() > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing was logged that contains %q", text)
		}
	}
}

// wantNothingBack fails if the member took a fail-over for a row that went back.
func (m *member) wantNothingBack(t *testing.T) {
	t.Helper()
	if n := m.logs.FilterMessage("sequence row went back").Len(); n > 0 {
		t.Errorf("got %d lines about rows that went back, want none", n)
	}
}

func TestAFailOverThatLosesReservationsWhileTwoProxiesHoldSegmentsRepeatsNoNumber(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	// They reserve again and again after that.
	a, b := e.join(t, "a", all, steadySize(40)), e.join(t, "b", all, steadySize(40))
	a.take(t, "a", "photos", 25)
	b.take(t, "b", "photos", 25)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1) // from here on the replica misses everything
	for range 20 {
		a.take(t, "a", "photos", 15)
		b.take(t, "b", "photos", 15)
	}
	e.wantBehind(t, 1, 0)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	// A proxy without any memory reserves first: the others' memory of what they reserved does not
	// help it.
	fresh := e.join(t, "a third", all)
	for range 20 {
		fresh.take(t, "the third", "photos", 40)
	}
	for range 20 {
		a.take(t, "a", "photos", 15)
		b.take(t, "b", "photos", 15)
	}
	takeovers := 0
	for _, m := range []*member{a, b, fresh} {
		m.wantNothingBack(t)
		takeovers += m.logs.FilterMessage("sequences held by another node").Len()
	}
	if takeovers != 1 {
		t.Errorf("%d take-overs were logged by all proxies together, want 1", takeovers)
	}
}

// A replica lags for longer than anybody waits. What it shows at last is what an earlier attempt
// has asked for, and counts: else each attempt would ask for more, until the ceiling is reached.
func TestAWindowThatALateReplicaShowsIsOpened(t *testing.T) {
	e := startEstate(t, 2, "photos")
	m := e.join(t, "a", new(given), steadySize(1000))
	m.take(t, "a", "photos", 1)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	take := func(thousands int) {
		t.Helper()
		if err := m.takeAll(t, "a", "photos", thousands); err != nil {
			t.Fatal(err)
		}
	}
	take(40) // more than half of a window
	m.wantLog(t, "windows not raised")
	e.Mend(t, 1)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	take(40)
}

func TestAnIsolatedPrimaryThatLivesOnGivesNothingThatTheNewOneGives(t *testing.T) {
	e := startEstate(t, 2, "photos", "quiet")
	all := &given{}
	old, fresh := e.join(t, "old", all), e.join(t, "new", all)
	old.take(t, "old", "photos", 25)
	e.CatchUp(t, 1, 0)
	old.cut(1) // it sees only the old primary, and the other one only the new one
	fresh.cut(0)
	e.Promote(t, 1)
	for range 20 {
		old.take(t, "old", "photos", 40)
		fresh.take(t, "new", "photos", 40)
	}
	// The old one reaches the end of what the new one has seen. The error says why and what to do.
	old.waits(3 * time.Second)
	refusedWith(t, func() error { return old.takeAll(t, "old", "photos", 1000) }, "ceiling", e.linkOf(old, 1), "`nodes`")
	fresh.take(t, "new", "photos", 1000)
	old.wantLog(t, "windows not raised")

	// It comes back as a writable stranger: refused, and the error names both.
	late := e.join(t, "late", all)
	_, err := late.Take(t.Context(), []byte("photos"), 1)
	var unfit *sequence.UnfitError
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), e.linkOf(late, 0)) || !strings.Contains(err.Error(), e.linkOf(late, 1)) ||
		!strings.Contains(err.Error(), `sequence "photos"`) {
		t.Errorf("a proxy that sees two primaries got %v, want an UnfitError that names both and the sequence", err)
	}
	e.Nodes[0].Exec(t, "SET GLOBAL read_only = 1")
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err = late.Take(t.Context(), []byte("photos"), 1); err == nil {
			break
		}
	}
	late.take(t, "late", "photos", 50)
}

func TestOfThreeNodesALaggingOneIsPromotedAndTheOldPrimaryComesBackAsAReplica(t *testing.T) {
	e := startEstate(t, 3, "photos")
	all := &given{}
	a, b := e.join(t, "a", all), e.join(t, "b", all)
	a.take(t, "a", "photos", 25)
	e.CatchUp(t, 1, 0)
	e.CatchUp(t, 2, 0)
	e.Cut(t, 2) // node 2 lags; windows are seen on node 1
	if err := a.takeAll(t, "a", "photos", 100); err != nil {
		t.Fatal(err)
	}
	b.take(t, "b", "photos", 25)
	if _, err := a.Create(t.Context(), sequence.CreateOptions{Name: "videos"}); err != nil {
		t.Fatal(err)
	}
	videos := &given{}
	for range 100 {
		a.takeOf(t, "a", "videos", videos)
	}
	// The lagging node becomes the primary: it gives nothing before it has read the windows from
	// one that has them.
	e.Nodes[0].Exec(t, "SET GLOBAL read_only = 1")
	e.Promote(t, 2)
	late, hasty := e.join(t, "late", all), e.join(t, "hasty", all, func(o *sequence.Options) { o.AllocateTimeout = 3 * time.Second })
	// It gives none before another node follows it.
	refusedWith(t, func() error { _, err := hasty.Take(t.Context(), []byte("photos"), 1); return err }, "replication")
	e.Follow(t, 1, 2)
	for range 30 {
		late.take(t, "late", "photos", 10)
		a.take(t, "a", "photos", 10)
		b.take(t, "b", "photos", 10)
	}
	late.wantLog(t, "sequence node chosen")
	for range 100 { // a sequence that is new to it continues, too
		late.takeOf(t, "late", "videos", videos)
	}

	// And back: the old primary follows the new one, and is promoted again.
	e.Follow(t, 0, 2)
	late.take(t, "late", "photos", 100)
	e.CatchUp(t, 0, 2)
	e.Cut(t, 0)
	late.take(t, "late", "photos", 100)
	if err := e.Nodes[2].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 0)
	e.Follow(t, 1, 0)
	for range 10 {
		late.take(t, "late", "photos", 40)
		a.take(t, "a", "photos", 40)
		b.take(t, "b", "photos", 40)
	}
}

// A row that was moved above a chosen number has to stay there after a fail-over, or the number is
// given.
func TestANumberThatSomebodyChoseInAGroupIsNotGivenAfterAFailOver(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	a := e.join(t, "a", all, steadySize(10))
	a.take(t, "a", "photos", 25)
	names := []string{"photos", "exact"}
	mustCreate(t, a.Sequences, sequence.CreateOptions{Name: "exact", Cache: 5})
	mustTake(t, a.Sequences, "exact", 1)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	a.waits(5 * time.Second)
	for _, name := range names {
		refusedWith(t, func() error { return a.Avoid(t.Context(), []byte(name), []uint64{1_000_000}) }, "fail-over")
	}
	e.Mend(t, 1)
	e.CatchUp(t, 1, 0)
	a.waits(usualPatience)
	for _, name := range names {
		if err := a.Avoid(t.Context(), []byte(name), []uint64{2_000_000}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	fresh := e.join(t, "new", all)
	for _, name := range names {
		if got := mustTake(t, fresh.Sequences, name, 1); got <= 2_000_000 {
			t.Errorf("%s: got %d after 2000000 was chosen", name, got)
		}
	}
}

// Before a group has given any number it has no ceiling: then a replica has to have the row itself.
func TestANumberThatSomebodyChoseBeforeAGroupGaveAnyIsOnAReplica(t *testing.T) {
	e := startEstate(t, 2, "photos")
	a := e.join(t, "a", &given{})
	if exists, err := a.Exists(t.Context(), []byte("photos")); !exists || err != nil {
		t.Fatal(exists, err)
	}
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	a.waits(3 * time.Second)
	if err := a.Avoid(t.Context(), []byte("photos"), []uint64{500}); err == nil {
		t.Error("avoided where no replica has it")
	}
	e.Mend(t, 1)
	e.CatchUp(t, 1, 0)
	a.waits(usualPatience)
	if err := a.Avoid(t.Context(), []byte("photos"), []uint64{500}); err != nil {
		t.Error(err)
	}
}

// A row above the ceiling gives nothing until a replica is back. So a chosen number does not move
// it there, and the rest below the ceiling is still given.
func TestANumberThatSomebodyChoseLeavesOthersWhatIsBelowTheCeiling(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	a := e.join(t, "a", all, steadySize(10))
	a.take(t, "a", "photos", 25)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	ceiling, ok := sequence.Inside(a.Sequences).First().Ceilings().Ceiling("photos")
	if !ok {
		t.Fatal("there is no ceiling")
	}
	b := e.join(t, "b", all, steadySize(1000), func(o *sequence.Options) { o.AllocateTimeout = 3 * time.Second })
	if err := b.Avoid(t.Context(), []byte("photos"), []uint64{ceiling + 1}); err == nil {
		t.Error("avoided above the ceiling, where no replica has it")
	}
	a.take(t, "a", "photos", 40)
	b.waits(usualPatience)
	chosen := ceiling - 100
	if err := b.Avoid(t.Context(), []byte("photos"), []uint64{chosen}); err != nil {
		t.Errorf("a number below the ceiling: got %v, want no error", err)
	}
	a.take(t, "a", "photos", 40)
	if got := mustTake(t, e.join(t, "new", all).Sequences, "photos", 1); got <= chosen || got > ceiling {
		t.Errorf("got %d, want a number above %d, below the ceiling %d", got, chosen, ceiling)
	}
}

// Another proxy finds in the row what one has moved and could not confirm.
func TestANumberIsNotAvoidedByARowThatNoReplicaHas(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	a := e.join(t, "a", all)
	a.take(t, "a", "photos", 25)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	a.waits(3 * time.Second)
	if err := a.Avoid(t.Context(), []byte("photos"), []uint64{1_000_000}); err == nil {
		t.Error("avoided where no replica has it")
	}
	b := e.join(t, "b", all, func(o *sequence.Options) { o.AllocateTimeout = 3 * time.Second })
	if err := b.Avoid(t.Context(), []byte("photos"), []uint64{999_999}); err == nil {
		t.Error("avoided by a row that no replica has")
	}
}

// A fail-over does not lose where a sequence begins, and what it gave before.
func TestWhatASequenceOfAGroupIsMadeAboveOutlivesAFailOver(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	a := e.join(t, "a", all)
	a.take(t, "a", "photos", 25)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	a.waits(3 * time.Second)
	anew := sequence.CreateOptions{Name: "photos", OrReplace: true, Start: 5_000_001}
	_, err := a.Create(t.Context(), anew)
	wantText(t, err, `sequence "photos" was replaced, but a fail-over could`)
	if _, err := a.Take(t.Context(), []byte("users"), 1); !errors.Is(err, sequence.ErrUnknown) {
		t.Fatal(err)
	}
	_, err = a.Create(t.Context(), sequence.CreateOptions{Name: "users", Start: 100, Order: true})
	wantText(t, err, `sequence "users" was created, but a fail-over could`)
	soon, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if got, err := a.Take(soon, []byte("users"), 1); err == nil || errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("what was created: got %d, %v", got, err)
	}
	e.Mend(t, 1)
	e.CatchUp(t, 1, 0)
	a.waits(usualPatience)
	mustCreate(t, a.Sequences, anew)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	if got := mustTake(t, e.join(t, "new", all).Sequences, "photos", 1); got <= 5_000_000 {
		t.Errorf("got %d of a sequence that was made to begin at 5000001", got)
	}
}

// The row of a sequence with a kind has another name.
func TestWhatASequenceWithAKindIsMadeAboveOutlivesAFailOver(t *testing.T) {
	e := startEstate(t, 2, "photos")
	a := e.join(t, "a", &given{})
	anew := sequence.CreateOptions{Name: "users", Kind: kind.NewBitReversed(false), Start: 5_000_001}
	mustCreate(t, a.Sequences, anew)
	anew.OrReplace, anew.Start = true, 9_000_001
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	a.waits(3 * time.Second)
	_, err := a.Create(t.Context(), anew)
	wantText(t, err, `sequence "users" was replaced, but a fail-over could`)
	e.Mend(t, 1)
	e.CatchUp(t, 1, 0)
	a.waits(usualPatience)
	mustCreate(t, a.Sequences, anew)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	key := mustTake(t, e.join(t, "new", &given{}).Sequences, "users", 1)
	if counter, _, _ := anew.Kind.Counter(key); counter <= 9_000_000 {
		t.Errorf("got the counter %d of a sequence that was made to begin at 9000001", counter)
	}
}

// A fail-over to a node that lags does not lose reserved ticks.
func TestSnowflakesAreGivenOnceOverAFailOver(t *testing.T) {
	e := startEstate(t, 3, "users")
	l, k := new(keyLedger), snow(t)
	a := e.join(t, "a", &given{}, patience(20*time.Second))
	mustCreate(t, a.Sequences, sequence.CreateOptions{Name: "photos", Kind: k, Cover: 20})
	for range 50 {
		l.take(t, a.Sequences, "photos", 1000)
	}
	e.CatchUp(t, 1, 0)
	e.CatchUp(t, 2, 0)
	e.Cut(t, 1)
	for range 50 {
		l.take(t, a.Sequences, "photos", 1000)
	}
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	e.Follow(t, 2, 1)
	b := e.join(t, "b", &given{}, patience(20*time.Second))
	for range 200 {
		l.take(t, a.Sequences, "photos", 500)
		l.take(t, b.Sequences, "photos", 500)
	}
}

// At its end there is no room for a window, and one of three nodes may lag and be promoted.
func TestThatASequenceOfAGroupIsAtItsEndOutlivesAFailOver(t *testing.T) {
	e := startEstate(t, 3, "photos")
	a := e.join(t, "a", &given{})
	const end = 1_000_000
	a.take(t, "a", "photos", 1)
	mustAlter(t, a.Sequences, "photos", sequence.Alteration{Max: ref(uint64(end))})
	e.CatchUp(t, 1, 0)
	e.CatchUp(t, 2, 0)
	e.Cut(t, 2)
	if _, ok, err := a.SetValue(t.Context(), []byte("photos"), end, true); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 2)
	e.Follow(t, 1, 2)
	if got, err := e.join(t, "new", &given{}).Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("got %d, %v after the end was set as used, want ErrExhausted", got, err)
	}
}

func (e *estate) linkOf(m *member, i int) string { return m.links[i].Addr() }

func TestSequencesOfAGroupAreMadeSetRestartedAndDroppedAsElsewhere(t *testing.T) {
	e := startEstate(t, 2, "photos")
	ctx := t.Context()
	s := e.join(t, "s", &given{})
	next := func(name string, want uint64) {
		t.Helper()
		if got, err := s.Take(ctx, []byte(name), 1); err != nil || got != want {
			t.Errorf("%s: got %d, %v; want %d", name, got, err, want)
		}
	}
	next("photos", 1)
	if _, err := s.Create(ctx, sequence.CreateOptions{Name: "stepped", Start: 1_000_000, Increment: 10, Cache: 3}); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(10) {
		next("stepped", 1_000_000+10*i)
	}
	if _, err := s.Create(ctx, sequence.CreateOptions{Name: "short", Max: 5}); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5) {
		next("short", i+1)
	}
	if _, err := s.Take(ctx, []byte("short"), 1); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("beyond the end: got %v, want ErrExhausted", err)
	}
	// A kind counts in a row of another name.
	for range 2 {
		made, err := s.Create(ctx, sequence.CreateOptions{Name: "reversed", Kind: kindOf(t, "BIT_REVERSED"), Start: 100, IfNotExists: true})
		if err != nil || made.First != 100 {
			t.Fatal(made, err)
		}
	}
	next("reversed", kindOf(t, "BIT_REVERSED").Key(100, 0))
	if made, err := s.Create(ctx, sequence.CreateOptions{Name: "reversed", IfNotExists: true}); err != nil || !made.Existed {
		t.Error(made, err)
	}
	// Far beyond the ceiling, and back below where this holder began.
	if _, _, err := s.SetValue(ctx, []byte("photos"), 5_000_000_000, true); err != nil {
		t.Fatal(err)
	}
	next("photos", 5_000_000_001)
	one := uint64(1)
	sequence.Inside(s.Sequences).ChangeTiming(func(t *sequence.Timing) { t.Tenure = 0 }) // no other proxy exists
	if _, err := s.Alter(ctx, []byte("photos"), sequence.Alteration{Restart: &one, Force: true}); err != nil {
		t.Fatal(err)
	}
	// 1, or above numbers that were reserved and discarded in the same moment.
	low, err := s.Take(ctx, []byte("photos"), 1)
	if err != nil || low > 1000 {
		t.Errorf("after the restart: got %d, %v; want 1 or little more", low, err)
	}
	if _, err := s.Drop(ctx, []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	made, err := s.Create(ctx, sequence.CreateOptions{Name: "photos"})
	if err != nil || made.First <= low {
		t.Fatalf("made again at %d, %v; want above what was given", made.First, err)
	}
	next("photos", made.First)

	// A sequence whose window no other node has seen gives nothing.
	e.Cut(t, 1)
	impatient := e.join(t, "impatient", &given{})
	if _, err := impatient.Create(ctx, sequence.CreateOptions{Name: "unseen"}); err != nil {
		t.Fatal(err)
	}
	impatient.waits(3 * time.Second)
	refusedWith(t, func() error { _, err := impatient.Take(ctx, []byte("unseen"), 1); return err }, "replication")
	if err := sequence.Inside(s.Sequences).First().Ceilings().ShownOn(ctx, 0, 2); err == nil {
		t.Error("what no replica has is said to survive a fail-over")
	}
	e.Mend(t, 1)
	if _, err := s.Take(ctx, []byte("unseen"), 1); err != nil {
		t.Error(err)
	}
	if err := sequence.Inside(s.Sequences).First().Ceilings().ShownOn(ctx, 0, 2); err != nil {
		t.Error(err)
	}

	// A switch-over in order: the next definition goes to the new primary, over connections that
	// led to the old one.
	e.CatchUp(t, 1, 0)
	e.Nodes[0].Exec(t, "SET GLOBAL read_only = 1")
	e.Promote(t, 1)
	e.Follow(t, 0, 1)
	// A look that has begun in between saw no primary.
	eventually(t, "a definition after a switch-over", func() bool {
		_, err := s.Create(ctx, sequence.CreateOptions{Name: "later"})
		return err == nil
	})
	if _, err := s.Take(ctx, []byte("later"), 1); err != nil {
		t.Error(err)
	}
}

// A primary that is killed is expelled by the others, which elect the next one.
func TestAReplicationGroupOutlivesItsPrimary(t *testing.T) {
	e := &estate{Group: mysqltest.StartReplicationGroup(t, 3), schema: "app"}
	e.Nodes[0].Exec(t, "CREATE DATABASE app", fmt.Sprintf(store.CreateTable, "app.sequence"), "INSERT INTO app.sequence (name) VALUES ('photos')")
	all := &given{}
	a, b := e.join(t, "a", all, patience(time.Minute)), e.join(t, "b", all, patience(time.Minute))
	for range 10 {
		a.take(t, "a", "photos", 15)
		b.take(t, "b", "photos", 15)
	}
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	for range 20 { // the first of them waits for the election
		a.take(t, "a", "photos", 40)
		b.take(t, "b", "photos", 40)
	}
	a.wantLog(t, "sequence node changed")
}

// The next primary is in another view, which is another holder. Two of three members are enough to
// confirm that, and one is not.
func TestAReplicationGroupHasAHolderForEachOfItsViews(t *testing.T) {
	e := &estate{Group: mysqltest.StartReplicationGroup(t, 3), schema: "app"}
	e.Nodes[0].Exec(t, "CREATE DATABASE app", fmt.Sprintf(store.CreateTable, "app.sequence"), "INSERT INTO app.sequence (name) VALUES ('photos')")
	all := &given{}
	a, b := e.join(t, "a", all), e.join(t, "b", all)
	for range 10 {
		a.take(t, "a", "photos", 15)
		b.take(t, "b", "photos", 15)
	}
	e.Nodes[0].Exec(t, "STOP GROUP_REPLICATION") // it goes on as a read-only server
	e.AwaitOnline(t, 1, 2)
	for range 20 {
		a.take(t, "a", "photos", 40)
		b.take(t, "b", "photos", 40)
	}
	a.wantLog(t, "sequence node changed")
	e.wantHolder(t, 1, 2)
	if _, ok, err := a.SetValue(t.Context(), []byte("photos"), 5_000_000, true); !ok || err != nil {
		t.Errorf("SETVAL: %v, %v", ok, err)
	}
	for i, node := range e.Nodes { // no node that is alone serves
		if i > 0 && node.DB(t, "app").QueryRow("SELECT 1 FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid AND MEMBER_ROLE = 'SECONDARY'").Scan(new(int)) == nil {
			node.Exec(t, "STOP GROUP_REPLICATION")
		}
	}
	fresh := e.join(t, "fresh", all, patience(3*time.Second))
	within(t, time.Minute, "a member that is left alone is no holder", func() bool {
		_, err := sequence.Inside(fresh.Sequences).First().Reserve(t.Context(), "photos", 1, 1)
		return err != nil && strings.Contains(err.Error(), "of the sequence server, and must be on 2")
	})
}

// wantHolder waits until a node has one holder, which is complete, of at least this term.
func (e *estate) wantHolder(t *testing.T, node int, term uint64) {
	t.Helper()
	var all, complete int
	var highest uint64
	db := e.Nodes[node].DB(t, "app")
	eventually(t, "the cluster has one holder", func() bool {
		err := db.QueryRow("SELECT COUNT(*), SUM(`complete`), MAX(`term`) FROM sequence_holder").Scan(&all, &complete, &highest)
		return err == nil && all == 1 && complete == 1 && highest >= term
	})
}

// A promoted replica may be all that remains of a group, and be configured alone before any proxy
// has taken it over: its counters are behind.
func TestAPromotedReplicaThatIsNamedAloneIsRefusedUntilItHoldsTheSequences(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	a := e.join(t, "a", all, steadySize(40))
	a.take(t, "a", "photos", 25)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	a.take(t, "a", "photos", 300)
	e.wantBehind(t, 1, 0)
	cutOff(t, a.Sequences)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	alone := func(o *sequence.Options) { o.Servers[0].Nodes = nil; o.Servers[0].Addr = e.Nodes[1].Addr() }
	early := e.join(t, "early", all, alone)
	if n, err := early.Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
		t.Fatalf("named alone before it holds the sequences: got %d, %v, want ErrUnfit", n, err)
	} else {
		wantText(t, err, "a group", "nodes", "DELETE FROM")
	}
	both := e.join(t, "both", all)
	both.take(t, "both", "photos", 3)
	both.wantLog(t, "sequences held by another node")
	later := e.join(t, "later", all, alone)
	if n, err := later.Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("named alone while others name the group: got %d, %v, want ErrUnfit", n, err)
	} else {
		wantText(t, err, "holds the sequences of a group", "nodes", "left alone for good, DELETE FROM")
	}
	cutOff(t, both.Sequences)
	e.Nodes[1].Exec(t, "DELETE FROM app.sequence_holder")
	for _, m := range []*member{early, later} {
		eventually(t, "one that was refused has numbers", func() bool {
			n, err := m.Take(t.Context(), []byte("photos"), 1)
			if err == nil {
				all.add(t, "alone", n)
			}
			return err == nil
		})
	}
}

// One of several proxies was not told that the server has replicas: no ceiling would bound what it
// gives.
func TestAProxyThatNamesThePrimaryOfAGroupAloneGivesNothing(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	alone := func(o *sequence.Options) { o.Servers[0].Nodes = nil; o.Servers[0].Addr = e.Nodes[0].Addr() }
	e.join(t, "before there was a group", all, alone).take(t, "before", "photos", 3)
	e.CatchUp(t, 1, 0)
	e.join(t, "both", all).take(t, "both", "photos", 3)
	if n, err := e.join(t, "alone", all, alone).Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %d, %v, want ErrUnfit", n, err)
	} else {
		wantText(t, err, "holds the sequences of a group", "nodes")
	}
}

// A server that was to become a group and never did has only itself as the holder, and served alone
// before. Where another was the holder it may lack numbers.
func TestAServerWhoseTakeOverWasNeverCompleteIsServedAloneIfItWasTheFirst(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 7})
	identity, said := "", "@@server_uuid"
	if p.server.IsMariaDB() {
		said = "CONCAT('server_id ', @@server_id)"
	}
	if err := p.db.QueryRow("SELECT " + said).Scan(&identity); err != nil {
		t.Fatal(err)
	}
	p.exec(t, fmt.Sprintf(store.CreateHolder, "sequence_holder"))
	p.exec(t, "INSERT INTO sequence_holder (holder, term, complete) VALUES ('"+identity+"', 2, 0)")
	if n := mustTake(t, p.open(t), "photos", 1); n != 8 {
		t.Errorf("got %d, want 8", n)
	}
	p.exec(t, "INSERT INTO sequence_holder (holder, term, complete) VALUES ('another one', 1, 1)")
	refused := p.open(t)
	if n, err := refused.Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("another was the holder: got %d, %v, want ErrUnfit", n, err)
	}
	examined := refused.Examine(t.Context(), func(context.Context, int, int, sequence.Ask) {})
	if found := examined[0].Nodes[0].Findings; len(found) != 1 || !strings.Contains(found[0].Error(), "sequence_holder") {
		t.Errorf("the examination finds %v", found)
	}
	p.exec(t, "DELETE FROM sequence_holder")
	mustTake(t, p.open(t), "photos", 1)
}

// An unrelated table of that name is named in an error, and so is one that cannot be read.
func TestATableNamedLikeThatOfAGroupIsToldOf(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 7})
	p.exec(t, "CREATE TABLE sequence_holder (x int)")
	if n, err := p.open(t).Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %d, %v, want ErrUnfit", n, err)
	} else {
		wantText(t, err, "sequence_holder", "lacks the columns holder, term, complete")
	}
	p.exec(t, "DROP TABLE sequence_holder")
	p.exec(t, fmt.Sprintf(store.CreateHolder, "sequence_holder"))
	p.exec(t, "ALTER TABLE sequence_holder DISCARD TABLESPACE")
	n, err := p.open(t).Take(t.Context(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Fatalf("got %d, %v, want ErrUnfit", n, err)
	}
	wantText(t, err, "sequence_holder", "DROP TABLE")
}

// Without a new window no replica is needed, also by a proxy that has not opened the present one.
func TestASequenceBelowItsWindowIsFoundWithoutAReplica(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	a := e.join(t, "a", all)
	a.take(t, "a", "photos", 25)
	if _, _, err := a.SetValue(t.Context(), []byte("photos"), 60_000, true); err != nil {
		// The window is used up except for its last part.
		t.Fatal(err)
	}
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	b := e.join(t, "b", all)
	made, err := b.Create(t.Context(), sequence.CreateOptions{Name: "photos", IfNotExists: true})
	if err != nil || !made.Existed {
		t.Errorf("a sequence that is there: got %+v, %v", made, err)
	}
	if err := b.Avoid(t.Context(), []byte("photos"), []uint64{50_000}); err != nil {
		t.Errorf("a number below the row: got %v, want no error", err)
	}
	if waited := b.logs.FilterMessage("windows not raised").All(); len(waited) > 0 {
		t.Errorf("a window was asked for: %v", waited)
	}
}

// Rows of an import with explicit keys, below those that were given, cost nothing each.
func TestChosenNumbersBelowTheRowOfAGroupCostOneQuestion(t *testing.T) {
	e := startEstate(t, 2, "photos")
	all := &given{}
	a := e.join(t, "a", all)
	mustCreate(t, a.Sequences, sequence.CreateOptions{Name: "exact", Cache: 5})
	fresh := e.join(t, "fresh", all)
	for _, name := range []string{"photos", "exact"} {
		mustTake(t, a.Sequences, name, 1)
		if err := a.Avoid(t.Context(), []byte(name), []uint64{50_000}); err != nil {
			t.Fatal(err)
		}
		avoid := func(n uint64) {
			t.Helper()
			if err := fresh.Avoid(t.Context(), []byte(name), []uint64{n}); err != nil {
				t.Fatal(err)
			}
		}
		avoid(1000)
		asked := questions(t, e.pools[0])
		for n := range uint64(1000) {
			avoid(40_000 + n)
		}
		if n := questions(t, e.pools[0]) - asked; n > 100 {
			t.Errorf("%s: 1000 numbers took %d statements", name, n)
		}
	}
}
