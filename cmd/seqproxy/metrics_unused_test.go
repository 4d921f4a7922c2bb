package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// numbered is a proxy with sequences, and direct access to their table.
type numbered struct {
	*metered
	server *mysqltest.Server
	schema string
	proxy  *subject
	link   *mysqltest.Link // from the proxy to the sequence server
	c      *sql.Conn       // to the proxy
	table  *sql.DB         // in the schema of the sequences
}

// startNumbered starts a proxy. first and rest are those of meteredConfig.
func startNumbered(t *testing.T, first, rest string) *numbered {
	t.Helper()
	server := mysqltest.Shared(t)
	n := &numbered{server: server, schema: server.Schema(t), link: mysqltest.NewLink(t, server.Addr())}
	n.proxy = startSubject(t, n.config(first, rest))
	n.metered, n.table = meter(t, n.proxy), server.DB(t, n.schema)
	n.c = n.proxy.mustConnect(t, "root", "")
	return n
}

func (n *numbered) config(first, rest string) string {
	return meteredConfig(n.server, n.schema, first, rest, n.link.Addr())
}

// eventually repeats a statement until it succeeds.
func (n *numbered) eventually(statement string) {
	n.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := firstValue(n.c, statement)
		if !strings.Contains(got, "Error") {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("%s: %s", statement, got)
		}
	}
}

func (n *numbered) exec(statements ...string) {
	n.t.Helper()
	for _, statement := range statements {
		if _, err := n.table.ExecContext(n.t.Context(), statement); err != nil {
			n.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// id returns the counter in a sequence's row.
func (n *numbered) id(name string) (id float64) {
	n.t.Helper()
	if err := n.table.QueryRowContext(n.t.Context(), "SELECT id FROM sequence WHERE name = ?", name).Scan(&id); err != nil {
		n.t.Fatal(err)
	}
	return id
}

// agrees waits until the metrics of reservations add up, for these sequences and for the server. In
// the middle of a reservation they may not.
func (n *numbered) agrees(names ...string) {
	n.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		all := n.read()
		wrong := all.disagreeOnServer(n.link.Addr())
		for _, name := range names {
			wrong += all.disagreeOn(name)
		}
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatal(wrong)
		}
	}
}

// disagreeOn returns "" if each reserved number of a sequence counts once: as given, cached or
// unused.
func (all series) disagreeOn(name string) string {
	sum := all.of(name).family("sequence_numbers_unused_total").sum()
	for _, what := range []string{"given", "cached"} {
		value, there := all[line(name, what)]
		if !there {
			return line(name, what) + " is not told\n"
		}
		sum += value
	}
	if reserved := all[line(name, "reserved")]; sum != reserved {
		return fmt.Sprintf("%s: %v numbers are told of, of %v that were reserved: %v\n", name, sum, reserved, all.of(name))
	}
	return ""
}

// disagreeOnServer returns "" if the reservations on the only server equal those of all sequences.
func (all series) disagreeOnServer(address string) (wrong string) {
	for _, result := range []string{"ok", "conflict", "changed", "end", "no_row", "no_ceiling", "rewind", "unknown", "unfit", "error"} {
		sum := 0.0
		for series, value := range all.family("sequence_reservations_total") {
			if strings.HasPrefix(series, `sequence_reservations_total{result="`+result+`",`) {
				sum += value
			}
		}
		if series := fmt.Sprintf(`sequence_server_reservation_duration_seconds_count{result="%s",server="%s"}`, result, address); all[series] != sum {
			wrong += fmt.Sprintf("%s: got %v, and %v of all sequences\n", series, all[series], sum)
		}
	}
	return wrong
}

// hold locks the row of a sequence until release is called.
func (n *numbered) hold(name string) (release func()) {
	n.t.Helper()
	tx, err := n.table.BeginTx(n.t.Context(), nil)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := tx.ExecContext(n.t.Context(), "SELECT id FROM sequence WHERE name = ? FOR UPDATE", name); err != nil {
		n.t.Fatal(err)
	}
	return func() {
		n.t.Helper()
		if err := tx.Rollback(); err != nil {
			n.t.Error(err)
		}
	}
}

// awaitUpdate waits until a reservation waits for its row.
func (n *numbered) awaitUpdate() {
	n.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var found int
		if err := n.table.QueryRowContext(n.t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE ?",
			"UPDATE%`"+n.schema+"`.`sequence`%").Scan(&found); err != nil {
			n.t.Fatal(err)
		}
		if found > 0 {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatal("no reservation waits for its row")
		}
	}
}

// counts are the metrics of a sequence with whole numbers.
var counts = []string{
	"sequence_numbers_given_total", "sequence_numbers_reserved_total", "sequence_numbers_unused_total", "sequence_cached_numbers",
	"sequence_wait_seconds_count", "sequence_waits_failed_total", "sequence_reservations_total", "sequence_rewinds_total", "sequence_epoch", "sequence_server_rewinds_total",
}

// line is the series for a metric of a sequence: "given", "unused restart".
func line(sequence, what string) string {
	what, value, labelled := strings.Cut(what, " ")
	name := map[string]string{
		"given": "numbers_given_total", "reserved": "numbers_reserved_total", "unused": "numbers_unused_total",
		"cached": "cached_numbers", "waits": "wait_seconds_count", "failed": "waits_failed_total", "reservations": "reservations_total", "rewinds": "rewinds_total",
	}[what]
	if labelled {
		label := map[string]string{"unused": "reason", "reservations": "result"}[what]
		return fmt.Sprintf(`sequence_%s{%s="%s",sequence="%s"}`, name, label, value, sequence)
	}
	return fmt.Sprintf(`sequence_%s{sequence="%s"}`, name, sequence)
}

// lines are those of a sequence.
func lines(sequence string, values map[string]float64) series {
	all := make(series)
	for what, value := range values {
		all[line(sequence, what)] = value
	}
	return all
}

// TestMetricsTellWhyNumbersAreNotUsed causes each reason and checks that nothing else changes.
func TestMetricsTellWhyNumbersAreNotUsed(t *testing.T) {
	n := startNumbered(t, "", "[[bind]]\ncolumn = \"bound.id\"\nsequence = \"chosen\"\n")
	must(t, n.c, "CREATE TABLE "+n.schema+".bound (id BIGINT UNSIGNED PRIMARY KEY)")
	next := func(name string, many int) string { return fmt.Sprintf("SELECT NEXTVAL('%s', %d)", name, many) }
	for _, c := range []struct {
		reason string
		do     func(name string)
		want   map[string]float64 // in addition to ten reserved numbers, of which the first was given
	}{
		{"restart", func(name string) { must(t, n.c, "ALTER SEQUENCE `"+name+"` RESTART WITH 5000") }, map[string]float64{"unused restart": 9, "cached": -9}},
		{"alter", func(name string) { must(t, n.c, "ALTER SEQUENCE `"+name+"` INCREMENT BY 2") }, map[string]float64{"unused alter": 9, "cached": -9}},
		{"cache", func(name string) { must(t, n.c, "ALTER SEQUENCE `"+name+"` CACHE 4") }, map[string]float64{"unused cache": 5, "cached": -5}},
		{"flush", func(name string) {
			// so that they cannot be given back
			n.exec("UPDATE sequence SET id = id + 1 WHERE name = '" + name + "'")
			must(t, n.c, "FLUSH SEQUENCES `"+name+"`")
		}, map[string]float64{"unused flush": 9, "cached": -9}},
		{"run", func(name string) {
			// the rest of nine is lost, and one more number that would have made ten
			n.exec("UPDATE sequence SET id = id + 1000 WHERE name = '" + name + "'")
			must(t, n.c, next(name, 10))
		}, map[string]float64{"unused run": 10, "given": 10, "cached": 1, "reserved": 21, "reservations ok": 3, "waits": 1}},
		{"chosen", func(string) { // 1 was given before
			must(t, n.c, "INSERT INTO "+n.schema+".bound VALUES (5), (7), (1)")
		}, map[string]float64{"unused chosen": 2, "cached": -2}},
		{"rewind", func(name string) {
			// A reservation waits for the row meanwhile: else the look that each proxy has at its rows
			// three times a second may raise it before.
			tx, err := n.table.BeginTx(t.Context(), nil)
			if err == nil {
				_, err = tx.ExecContext(t.Context(), "UPDATE sequence SET id = 0 WHERE name = ?", name)
			}
			if err != nil {
				t.Fatal(err)
			}
			taken := make(chan error, 1)
			go func() {
				_, err := n.c.ExecContext(t.Context(), next(name, 10))
				taken <- err
			}()
			n.awaitUpdate()
			if err := errors.Join(tx.Commit(), <-taken); err != nil {
				t.Fatal(err)
			}
		}, map[string]float64{"unused rewind": 1, "given": 10, "cached": 1, "reserved": 12, "reservations ok": 2, "reservations rewind": 1, "rewinds": 1, "waits": 1}},
	} {
		name := c.reason
		must(t, n.c, "CREATE SEQUENCE `"+name+"` CACHE 10", next(name, 1))
		n.awaits(name+" before", lines(name, map[string]float64{"given": 1, "cached": 9, "reserved": 10, "reservations ok": 1, "waits": 1}))
		want := lines(name, c.want)
		if rewinds := c.want["rewinds"]; rewinds > 0 {
			want[fmt.Sprintf(`sequence_server_rewinds_total{server="%s"}`, n.link.Addr())] = rewinds
		}
		n.moves(name, counts, want, func() { c.do(name) })
		n.agrees(name)
	}
	for name := range n.read().family("sequence_numbers_given_total") {
		name = strings.TrimSuffix(strings.TrimPrefix(name, `sequence_numbers_given_total{sequence="`), `"}`)
		if name == "other" {
			continue
		}
		must(t, n.c, "DROP SEQUENCE `"+name+"`")
		if rest := n.read().of(name); len(rest) > 0 {
			t.Errorf("metrics of the dropped sequence %s: got %v, want none", name, rest)
		}
	}
}

// TestMetricsOfAReservationWhoseConnectionBreaks: whether it was committed is unknown.
func TestMetricsOfAReservationWhoseConnectionBreaks(t *testing.T) {
	n := startNumbered(t, "", "")
	must(t, n.c, "CREATE SEQUENCE photos CACHE 10")
	ended := func() float64 {
		all := n.read()
		return all[line("photos", "reservations unknown")] + all[line("photos", "reservations error")]
	}
	unknown := 0.0
	for given := 10.0; unknown == 0; given += 10 {
		// repeat if it has ended by itself when the connection breaks
		before, release := ended(), n.hold("photos")
		answered := make(chan error, 1)
		go func() {
			_, err := n.c.ExecContext(context.Background(), "SELECT NEXTVAL('photos', 10)")
			answered <- err
		}()
		n.awaitUpdate()
		n.link.Cut()
		for deadline := time.Now().Add(patience); ended() == before; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the reservation does not end")
			}
		}
		release()
		n.link.Mend()
		if err := receive(t, "the numbers", answered); err != nil {
			t.Fatal(err)
		}
		all := n.awaits("the numbers of the late reservation", lines("photos", map[string]float64{"given": given, "failed": 0, "unused refused": 0}))
		unknown = all[line("photos", "reservations unknown")]
		if got := all[line("photos", "unused unknown_commit")]; got != 10*unknown {
			t.Errorf("got %v numbers of %v reservations whose outcome nobody knows, want ten each", got, unknown)
		}
		n.agrees("photos")
	}
}

// TestMetricsOfAReservationThatCannotBeTrusted: a trigger stores another number.
func TestMetricsOfAReservationThatCannotBeTrusted(t *testing.T) {
	n := startNumbered(t, "", "")
	must(t, n.c, "CREATE SEQUENCE photos CACHE 10", "SELECT NEXTVAL('photos', 4)")
	n.awaits("before", lines("photos", map[string]float64{"given": 4, "cached": 6, "reserved": 10, "reservations ok": 1, "waits": 1}))
	n.exec("CREATE TRIGGER lowers BEFORE UPDATE ON sequence FOR EACH ROW SET NEW.id = NEW.id - 1")
	// Another client might have changed the row at that moment. So there are six attempts of 20
	// numbers each.
	n.moves("the trigger", counts, lines("photos", map[string]float64{"reserved": 120, "unused refused": 120, "reservations changed": 5, "reservations unfit": 1, "waits": 1, "failed": 1}), func() {
		if got := firstValue(n.c, "SELECT NEXTVAL('photos', 20)"); !strings.Contains(got, "unfit to give numbers") {
			// the way out is in the log
			t.Errorf("got %s, want an error that says that the table is unfit", got)
		}
	})
	n.exec("DROP TRIGGER lowers")
	n.eventually("SELECT NEXTVAL('photos', 20)")
	n.awaits("after", lines("photos", map[string]float64{"given": 24}))
	n.agrees("photos")
}

// TestMetricsOfNumbersWhoseCallerHasGone: an ORDER sequence keeps nothing for the next caller.
func TestMetricsOfNumbersWhoseCallerHasGone(t *testing.T) {
	n := startNumbered(t, "", "")
	must(t, n.c, "CREATE SEQUENCE strict ORDER", "SELECT NEXTVAL('strict')")
	n.awaits("before", lines("strict", map[string]float64{"given": 1, "cached": 0, "reserved": 1, "unused caller_gone": 0}))
	gone := 0.0
	for given := 2.0; gone == 0; given++ {
		// repeat if the reservation has ended by itself when the client leaves
		waits, release := n.read()[line("strict", "waits")], n.hold("strict")
		ctx, leave := context.WithCancel(context.Background())
		answered := make(chan error, 1)
		go func() {
			c, err := connectTo(t, n.clients, "root", "", nil)
			if err == nil {
				_, err = c.ExecContext(ctx, "SELECT NEXTVAL('strict', 3)")
			}
			answered <- err
		}()
		n.awaitUpdate()
		leave() // it closes the connection
		if err := receive(t, "the client's own end", answered); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		n.awaits("the proxy has noticed that the client is gone", lines("strict", map[string]float64{"waits": waits + 1, "failed": 0}))
		release()
		must(t, n.c, "SELECT NEXTVAL('strict')") // it follows that reservation
		all := n.awaits("the next number", lines("strict", map[string]float64{"given": given, "waits": waits + 2, "failed": 0, "cached": 0}))
		gone = all[line("strict", "unused caller_gone")]
		if reserved := all[line("strict", "reserved")]; gone != 0 && gone != 3 || reserved != given+gone || reserved != n.id("strict") {
			t.Fatalf("got %v numbers whose caller has gone, of %v that were reserved and %v given, the row is at %v", gone, reserved, given, n.id("strict"))
		}
		n.agrees("strict")
	}
}
