package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/process"
	"seqproxy/sequence"
	"seqproxy/sequence/store"
)

// Nobody waits for a proxy that was killed once another was started on its machine. One on another
// machine may live.
func TestEntriesOfProxiesThatDiedHereAreRemoved(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	self := process.Name()
	started, ok := process.Started(child.Process.Pid)
	if self == "" || !ok {
		t.Fatalf("this process is %q and its child was started at %q, %v", self, started, ok)
	}
	fields := strings.Fields(self)
	living := strings.Join([]string{fields[0], fields[1], strconv.Itoa(child.Process.Pid), started}, " ")
	if process.IsDead(self) || process.IsDead(living) {
		t.Error("a living process is taken for dead")
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead := strings.Join([]string{fields[0], fields[1], strconv.Itoa(ended.Process.Pid), started}, " ")
	// its process id is another process's now
	again := strings.Join([]string{fields[0], fields[1], fields[2], "17"}, " ")
	elsewhere := strings.Join([]string{"another-boot", fields[1], strconv.Itoa(ended.Process.Pid), started}, " ")

	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	first := p.open(t)
	mustTake(t, first, "photos", 1)
	for id, named := range map[string]string{
		"living": living, "dead": dead, "again": again, "elsewhere": elsewhere, "unknown": "", "odd": "a b c d",
	} {
		p.exec(t, "INSERT INTO sequence_proxy (id, host, process, since, heartbeat, version) VALUES (?, 'here', ?, UTC_TIMESTAMP(), UTC_TIMESTAMP(), 0)", id, named)
	}
	second := p.open(t, seldomHearing)
	mustTake(t, second, "photos", 1)
	all, err := sequence.Inside(second).Proxies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for _, one := range all {
		listed[one.ID] = true
		if one.Silent < 0 || one.Stale() {
			t.Errorf("got %+v, want one with a heartbeat just now", one)
		}
	}
	for id, want := range map[string]bool{
		"living": true, "dead": false, "again": false, "elsewhere": true, "unknown": true, "odd": true,
		sequence.Inside(first).First().Registry.ID: true, sequence.Inside(second).First().Registry.ID: true,
	} {
		if listed[id] != want {
			t.Errorf("entry %s is there: %v, want %v", id, listed[id], want)
		}
	}

	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if !process.IsDead(living) {
		t.Error("a process that was killed is taken for living")
	}
}

// The first reservations of a proxy wait for its entry. Where the server does not make it, each
// waits for its time limit, and not for those before it too.
func TestNobodyWaitsForTheEntryLongerThanItsOwnTime(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t)
	v := sequence.Inside(s).First()
	conn, err := p.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, text := range []string{fmt.Sprintf(store.CreateProxies, "sequence_proxy"), "LOCK TABLES sequence_proxy WRITE"} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	first, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Enlist(first) }()
	eventually(t, "the entry is being made", func() bool { return len(v.Registry.Making) == 1 })
	hurry, stopHurry := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, await.ErrPatience)
	defer stopHurry()
	if err := v.Enlist(hurry); !errors.Is(err, await.ErrPatience) {
		t.Errorf("a caller that waits for another's attempt got %v, want that its time is over", err)
	}
	select {
	case err := <-ended:
		t.Errorf("the first attempt ended with %v before the table could be written to", err)
	default:
	}
	stop()
	if err := <-ended; err == nil || v.Registry.Listed.Load() {
		t.Errorf("an attempt that was given up ended with %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	mustTake(t, s, "photos", 1)
	if !v.Registry.Listed.Load() {
		t.Error("numbers were reserved without an entry")
	}
}
