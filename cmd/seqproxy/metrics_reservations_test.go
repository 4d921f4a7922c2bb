package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestMetricsTellHowReservationsEnd causes all ends that the reasons for unused numbers do not
// include.
func TestMetricsTellHowReservationsEnd(t *testing.T) {
	n := startNumbered(t, "", "")
	next := func(name string, many int) string { return fmt.Sprintf("SELECT NEXTVAL('%s', %d)", name, many) }
	reservations := []string{"sequence_reservations_total", "sequence_waits_failed_total"}

	must(t, n.c, "CREATE SEQUENCE locked CACHE 10")
	release, answered := n.hold("locked"), make(chan error, 1)
	go func() {
		_, err := n.c.ExecContext(context.Background(), next("locked", 1))
		answered <- err
	}()
	for deadline := time.Now().Add(patience); n.read()[line("locked", "reservations error")] == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a wait for a lock has no end")
		}
	}
	release()
	if err := receive(t, "the number", answered); err != nil {
		t.Fatal(err)
	}
	n.awaits("after the lock", lines("locked", map[string]float64{"given": 1, "reservations ok": 1, "failed": 0, "waits": 1}))

	must(t, n.c, "CREATE SEQUENCE changed CACHE 10", next("changed", 4))
	n.moves("options that nobody was told of", reservations, lines("changed", map[string]float64{"reservations changed": 1, "reservations ok": 2}), func() {
		n.exec("UPDATE sequence_options SET increment = 2 WHERE name = 'changed'")
		must(t, n.c, next("changed", 20))
	})

	must(t, n.c, "CREATE SEQUENCE ending MAXVALUE 20 CACHE 10", next("ending", 10))
	n.awaits("all is reserved", lines("ending", map[string]float64{"cached": 10, "reservations ok": 2, "reservations end": 0}))
	n.moves("the last ones", reservations, lines("ending", map[string]float64{"reservations end": 1}), func() { must(t, n.c, next("ending", 10)) })
	n.moves("none are left", reservations, lines("ending", map[string]float64{"reservations end": 1, "failed": 1}), func() {
		if got := firstValue(n.c, next("ending", 1)); !strings.Contains(got, "Error 4084") {
			t.Errorf("got %s, want error 4084", got)
		}
	})
	n.agrees()

	must(t, n.c, "CREATE SEQUENCE deleted CACHE 10", next("deleted", 10))
	n.awaits("more are fetched", lines("deleted", map[string]float64{"cached": 10}))
	ends := []string{"sequence_server_reservation_duration_seconds_count"}
	n.moves("a row that is deleted", ends, series{fmt.Sprintf(`%s{result="no_row",server="%s"}`, ends[0], n.link.Addr()): 1}, func() {
		n.exec("DELETE FROM sequence WHERE name = 'deleted'")
		if got := firstValue(n.c, next("deleted", 20)); !strings.Contains(got, "Error 4091") {
			t.Errorf("got %s, want error 4091", got)
		}
	})
	if rest := n.read().of("deleted"); len(rest) > 0 {
		t.Errorf("metrics of a dropped sequence: got %v, want none", rest)
	}
}

// TestMetricsOfAnOutageOfTheSequenceServer cuts the connection to the server, with numbers in
// memory and without.
func TestMetricsOfAnOutageOfTheSequenceServer(t *testing.T) {
	n := startNumbered(t, "", "")
	must(t, n.c, "CREATE SEQUENCE photos CACHE 10", "CREATE SEQUENCE strict ORDER", "SELECT NEXTVAL('photos')", "SELECT NEXTVAL('strict')")
	up, home := fmt.Sprintf(`sequence_server_up{server="%s"}`, n.link.Addr()), `sequence_order_home_up{sequence="strict"}`
	before := n.awaits("before", series{
		up: 1, home: 1, line("photos", "cached"): 9, line("photos", "reservations error"): 0, line("strict", "cached"): 0, line("strict", "failed"): 0,
		fmt.Sprintf(`sequence_server_node_info{node="%[1]s",server="%[1]s"}`, n.link.Addr()): 1, "sequence_plan_number": 0, "ready": 1,
	})
	taken := time.Now()
	n.moves("a reload", []string{"config_reloads_total"}, series{`config_reloads_total{result="ok"}`: 1}, func() {
		n.proxy.reload(n.config(`sequence.allocate_timeout = "300ms"`, ""))
	})
	if at := n.read()["config_last_reload_success_timestamp_seconds"]; at < float64(taken.UnixNano())/1e9-0.01 || at > float64(time.Now().UnixNano())/1e9+0.01 {
		t.Errorf("time of the last reload: got %v", at)
	}
	n.link.Cut()
	n.awaits("no client takes numbers", series{up: 0, home: 0})
	for range 9 {
		must(t, n.c, "SELECT NEXTVAL('photos')")
	}
	all := n.awaits("numbers from memory", lines("photos", map[string]float64{"given": 10, "cached": 0, "waits": 1, "failed": 0}))
	if got := all[`sequence_cover_seconds{sequence="photos"}`]; got != 0 {
		t.Errorf("with an empty cache: got a cover of %v seconds, want 0", got)
	}
	for i := range 3 {
		for _, name := range []string{"photos", "strict"} {
			if got := firstValue(n.c, "SELECT NEXTVAL('"+name+"')"); !strings.Contains(got, "Error 1105") {
				t.Errorf("%s: got %s, want error 1105", name, got)
			}
			all = n.awaits("no number", lines(name, map[string]float64{"waits": float64(i + 2), "failed": float64(i + 1), "unused unknown_commit": 0}))
			waited := `sequence_wait_seconds_sum{sequence="` + name + `"}`
			if got, least := all[waited]-before[waited], 0.3*float64(i+1); got < least {
				t.Errorf("%s: waits took %v s together, want %v or more", name, got, least)
			}
			if got := all[line(name, "reservations error")]; got == 0 {
				t.Errorf("%s: no reservation has failed", name)
			}
		}
	}
	n.agrees()
	n.link.Mend()
	n.awaits("the server is back", series{up: 1, home: 1})
	n.proxy.reload(n.config("", ""))
	must(t, n.c, "SELECT NEXTVAL('photos')", "SELECT NEXTVAL('strict')")
	n.agrees("photos", "strict")
}

// TestMetricsOfHowLongNumbersLast checks that times and ends follow from the rate and the position.
func TestMetricsOfHowLongNumbersLast(t *testing.T) {
	n := startNumbered(t, "", "")
	must(t, n.c, "CREATE SEQUENCE photos MINVALUE 101 MAXVALUE 1100 CACHE 10", "SELECT NEXTVAL('photos', 5)")
	n.awaits("before", lines("photos", map[string]float64{"cached": 10, "reserved": 15}))
	of := func(all series, metric string) float64 {
		t.Helper()
		value, there := all["sequence_"+metric+`{sequence="photos"}`]
		if !there {
			t.Errorf("got no %s, want it", metric)
		}
		return value
	}
	near := func(what string, got, want, by float64) {
		t.Helper()
		if math.Abs(got-want) > by || math.IsNaN(got) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	begin := time.Now()
	all := n.read()
	end := time.Now()
	near("used", of(all, "used_ratio"), 0.015, 1e-9)
	near("size", of(all, "cache_size"), 10, 0)
	rate := 10 / of(all, "cover_seconds")
	// Five were given, and the rate is that of the last minute.
	if rate <= 0 || rate > 5.0/60+1e-9 {
		t.Errorf("numbers last for %v s, so %v a second are taken", of(all, "cover_seconds"), rate)
	}
	near("skew", of(all, "order_skew_seconds"), 10/rate, 1e-6)
	ends := of(all, "exhaustion_timestamp_seconds") - 985/rate
	if from, to := float64(begin.UnixNano())/1e9, float64(end.UnixNano())/1e9; ends < from-0.01 || ends > to+0.01 {
		t.Errorf("time to the end: got %v s, want %v s: now is %v to %v", ends-from+985/rate, 985/rate, from, to)
	}

	must(t, n.c, "SELECT NEXTVAL('photos', 900)", "SELECT NEXTVAL('photos', 80)")
	all = n.awaits("nearly all", lines("photos", map[string]float64{"cached": 10, "reserved": 995}))
	near("used near the end", of(all, "used_ratio"), 0.995, 1e-9)
	must(t, n.c, "SELECT NEXTVAL('photos', 10)")
	for range 5 {
		must(t, n.c, "SELECT NEXTVAL('photos')")
	}
	if got := firstValue(n.c, "SELECT NEXTVAL('photos')"); !strings.Contains(got, "Error 4084") {
		t.Fatalf("got %s, want error 4084", got)
	}
	begin = time.Now()
	all = n.awaits("the end", lines("photos", map[string]float64{"given": 1000, "cached": 0}))
	near("used at the end", of(all, "used_ratio"), 1, 0)
	if got := of(all, "exhaustion_timestamp_seconds"); got < float64(begin.UnixNano())/1e9-0.01 || got > float64(time.Now().UnixNano())/1e9+0.01 {
		t.Errorf("time of the end: got %v", got)
	}

	must(t, n.c, "CREATE SEQUENCE circle MAXVALUE 20 CACHE 10 CYCLE", "SELECT NEXTVAL('circle')")
	all = n.awaits("one with CYCLE", lines("circle", map[string]float64{"given": 1}))
	for _, metric := range []string{"used_ratio", "exhaustion_timestamp_seconds"} {
		if value, there := all["sequence_"+metric+`{sequence="circle"}`]; there {
			t.Errorf("%s of a sequence with CYCLE: got %v, want none", metric, value)
		}
	}
}

// TestMetricsOfANewEpoch: RESTART ... FORCE begins an epoch, and the numbers in memory become void.
func TestMetricsOfANewEpoch(t *testing.T) {
	n := startNumbered(t, "", "")
	must(t, n.c, "CREATE SEQUENCE photos CACHE 10", "SELECT NEXTVAL('photos')")
	n.awaits("before", series{line("photos", "cached"): 9, `sequence_epoch{sequence="photos"}`: 0})
	for i, restarted := range []float64{9, 18} {
		must(t, n.c, "ALTER SEQUENCE photos RESTART WITH 1 FORCE")
		var epoch float64
		if err := n.table.QueryRowContext(t.Context(), "SELECT epoch FROM sequence_options WHERE name = 'photos'").Scan(&epoch); err != nil || epoch == 0 {
			t.Fatalf("the table has the epoch %v, %v", epoch, err)
		}
		n.awaits("restarted", series{line("photos", "cached"): 0, line("photos", "unused restart"): restarted, `sequence_epoch{sequence="photos"}`: epoch})
		if got := firstValue(n.c, "SELECT NEXTVAL('photos')"); got != "1" {
			t.Errorf("got %s, want 1", got)
		}
		n.awaits("numbers go on", lines("photos", map[string]float64{"cached": 9, "given": float64(i + 2), "rewinds": 0}))
		n.agrees("photos")
	}
}

// TestMetricsNameAThousandSequences uses more sequences than have metrics of their own.
func TestMetricsNameAThousandSequences(t *testing.T) {
	if testing.Short() {
		t.Skip("CI runs it: a thousand sequences")
	}
	const named, more = 1000, 20
	n := startNumbered(t, "", "")
	must(t, n.c, "CREATE SEQUENCE s0 CACHE 2")
	text := "INSERT INTO sequence (name) VALUES ('s1')"
	for i := 2; i < named+more; i++ {
		text += fmt.Sprintf(", ('s%d')", i)
	}
	n.exec(text)
	for i := range named + more {
		must(t, n.c, fmt.Sprintf("SELECT NEXTVAL('s%d')", i))
	}
	total := func(all series, metric string) float64 { return all.family("sequence_" + metric).sum() }
	all := n.awaits("more than a thousand", lines("other", map[string]float64{"given": more}))
	if got := len(all.family("sequence_numbers_given_total")); got != named+1 {
		t.Errorf("got %d sequences, want %d and other", got, named)
	}
	if got := all["sequences"]; got != named+more {
		t.Errorf("sequences: got %v, want %d", got, named+more)
	}
	if given, cached, reserved := total(all, "numbers_given_total"), total(all, "cached_numbers"), total(all, "numbers_reserved_total"); given != named+more || given+cached != reserved {
		t.Errorf("got %v given, %v in memory, %v reserved, want %d, and the sum of both", given, cached, reserved, named+more)
	}
	n.agrees("other")
	for series := range all.of("other") {
		for _, metric := range []string{"cache_size", "cover_seconds", "order_skew_seconds", "used_ratio", "exhaustion", "epoch", "order_home_up"} {
			if strings.HasPrefix(series, "sequence_"+metric) {
				t.Errorf("got %s, which cannot be added up, want none", series)
			}
		}
	}

	n.moves("one of the others is dropped", counts, lines("other", map[string]float64{"cached": -9, "unused drop": 9}), func() {
		must(t, n.c, fmt.Sprintf("DROP SEQUENCE s%d", named))
	})
	n.agrees("other")
	n.moves("one with a name is dropped", []string{"sequence_numbers_given_total", "sequences"}, series{line("s1", "given"): -1, "sequences": -1}, func() {
		must(t, n.c, "DROP SEQUENCE s1")
	})
	must(t, n.c, "CREATE SEQUENCE late")
	n.moves("there is room for a name", []string{"sequence_numbers_given_total"}, series{line("late", "given"): 1}, func() {
		must(t, n.c, "SELECT NEXTVAL('late')")
	})
	if got := len(n.read().family("sequence_numbers_given_total")); got != named+1 {
		t.Errorf("got %d sequences, want %d and other", got, named)
	}
}
