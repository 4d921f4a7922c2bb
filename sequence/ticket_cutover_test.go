package sequence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/internal/mysqltest"
)

// TestATableThatIsCutOverNeverMeetsItsSequence: direct applications go on all the time, through the cut-over too.
func TestATableThatIsCutOverNeverMeetsItsSequence(t *testing.T) {
	p := placeOn(t, mysqltest.StartUnsynced(t)).withTickets(t)
	for _, app := range ticketApps() {
		t.Run(app.table, func(t *testing.T) {
			core, logs := observer.New(zapcore.WarnLevel)
			var mu sync.Mutex
			seen := make(map[uint64]bool)
			take := func(f func() (uint64, error)) {
				for range 25 {
					id, err := f()
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if id == 0 || seen[id] {
						t.Errorf("%d was given twice", id)
					}
					seen[id] = true
					mu.Unlock()
				}
			}
			c, err := p.db.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			take(func() (uint64, error) { return app.direct(c) })
			var wg sync.WaitGroup
			wg.Go(func() { take(func() (uint64, error) { return app.direct(c) }) })
			var cut *CutOver
			for range 2 {
				s := p.open(t, steadySize(5), func(o *Options) { o.Logger = zap.New(core) })
				one := s.CutOver(p.schema, app.table, "of_"+app.table, false)
				cut = one
				wg.Go(func() { take(func() (uint64, error) { return app.cachedFrom(one) }) })
				wg.Go(func() { take(func() (uint64, error) { return app.cachedFrom(one) }) })
			}
			wg.Wait()
			if len(seen) != 6*25 {
				t.Errorf("got %d numbers, want %d", len(seen), 6*25)
			}

			take(func() (uint64, error) { return app.direct(c) })
			cut.watched.Store(0)
			take(func() (uint64, error) { return app.cachedFrom(cut) })
			eventually(t, "a warning of direct applications", func() bool {
				return logs.FilterMessage("ticket table used after the cut-over").Len() > 0
			})

			// A table that was emptied is raised again by the next proxy that begins.
			p.exec(t, "TRUNCATE "+app.table)
			again := p.open(t, steadySize(5)).CutOver(p.schema, app.table, "of_"+app.table, false)
			take(func() (uint64, error) { return app.cachedFrom(again) })
			if id, err := app.direct(c); err != nil || id <= again.done.Load().Max {
				t.Errorf("direct, after TRUNCATE: got %d, %v, want a number above %d", id, err, again.done.Load().Max)
			}
		})
	}
}

// cachedFrom takes a number as the proxy does it for an application.
func (a *ticketApp) cachedFrom(from interface {
	Replace(ctx context.Context, id, column, stub []byte) (Ticket, error)
	Insert(ctx context.Context, id []byte) (Ticket, error)
},
) (uint64, error) {
	ticket, err := from.Insert(context.Background(), nil)
	for _, column := range []string{"stub", "table_name"} {
		if errors.Is(err, ErrNoTicket) {
			ticket, err = from.Replace(context.Background(), nil, []byte(column), []byte("a"))
		}
	}
	return ticket.Number, err
}

func TestEachStubOfATableThatIsCutOverMayCountByItself(t *testing.T) {
	p := placeOn(t, mysqltest.StartUnsynced(t)).withTickets(t)
	p.exec(t, "REPLACE INTO id_tempInnoDB (table_name) VALUES ('photos'), ('users'), ('photos')")
	next := uint64(0)
	for _, size := range []uint64{100, 10} {
		cut := p.open(t, steadySize(size)).CutOver(p.schema, "id_tempInnoDB", "ids", true)
		for i := range uint64(6) {
			for _, stub := range []string{"photos", "users", "new"} {
				got, err := cut.Replace(context.Background(), nil, []byte("table_name"), []byte(stub))
				if err != nil {
					t.Fatal(err)
				}
				if next == 0 {
					next = got.Number // above all that the table gave
				}
				if got.Number != next+i || got.Replaced != (stub != "new" || i > 0 || size == 10) {
					t.Errorf("%s: got %+v, want %d", stub, got, next+i)
				}
			}
		}
		if next <= 3 {
			t.Errorf("the first number: got %d, want one above 3", next)
		}
		next += 100 // what the first proxy holds
	}
}

func TestACutOverIsRefusedWhereItCouldRepeatNumbers(t *testing.T) {
	p := placeOn(t, mysqltest.StartUnsynced(t)).withTickets(t)
	s := p.open(t)
	ctx := context.Background()
	if _, err := s.Create(ctx, CreateOptions{Name: "photos"}); err != nil {
		t.Fatal(err)
	}
	_, err := s.CutOver(p.schema, "ids_photosInnoDB", "photos", false).Insert(ctx, nil)
	if !errors.Is(err, ErrUnfit) {
		t.Errorf("a sequence that was there before: got %v, want ErrUnfit", err)
	}
	wantText(t, err, "photos", "ids_photosInnoDB")
	p.exec(t, "CREATE TABLE small (id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY)")
	p.exec(t, fmt.Sprintf("INSERT INTO small VALUES (%d)", 65000))
	if _, err := s.CutOver(p.schema, "small", "smalls", false).Insert(ctx, nil); !errors.Is(err, ErrUnfit) {
		t.Errorf("a column that is nearly used up: got %v, want ErrUnfit", err)
	}
	// The counter of a stub, too.
	for range 2 {
		stubs := s.CutOver(p.schema, "id_tempInnoDB", "stubs", true)
		if _, err := stubs.Replace(ctx, nil, []byte("table_name"), []byte("users")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(ctx, CreateOptions{Name: "stubs:photos", IfNotExists: true}); err != nil {
			t.Fatal(err)
		}
		got, err := stubs.Replace(ctx, nil, []byte("table_name"), []byte("photos"))
		if !errors.Is(err, ErrUnfit) {
			t.Errorf("a sequence of a stub's name that was there before: got %+v, %v, want ErrUnfit", got, err)
			continue
		}
		wantText(t, err, "stubs:photos", "id_tempInnoDB")
	}
}
