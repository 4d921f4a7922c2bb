package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
)

func TestNamesMeanTheSameSequenceIfTheTableSaysSo(t *testing.T) {
	for _, c := range []struct {
		column string
		same   bool // whether letter case and trailing spaces are ignored
	}{
		{"varchar(50) CHARACTER SET latin1 COLLATE latin1_swedish_ci", true},
		{"varchar(50) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci", true},
		{"varchar(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", true},
		{"varchar(50) CHARACTER SET utf8mb4 COLLATE NO_PAD", false},
		{"varbinary(50)", false},
	} {
		t.Run(c.column, func(t *testing.T) {
			p := newPlace(t)
			noPad := "utf8mb4_nopad_bin"
			if !p.server.IsMariaDB() {
				noPad = "utf8mb4_0900_bin"
			}
			p.exec(t, "CREATE TABLE sequence (name "+strings.Replace(c.column, "NO_PAD", noPad, 1)+" NOT NULL PRIMARY KEY, id bigint unsigned NOT NULL) ENGINE=InnoDB")
			p.exec(t, "INSERT INTO sequence VALUES ('Photos', 0)")
			s := p.open(t)
			last := mustTake(t, s, "Photos", 1)
			for _, name := range []string{"photos", "PHOTOS", "Photos  "} {
				n, err := s.Take(context.Background(), []byte(name), 1)
				switch {
				case c.same && (err != nil || n != last+1):
					t.Errorf("%q gave %d, %v; want %d from the same segment", name, n, err, last+1)
				case !c.same && !errors.Is(err, sequence.ErrUnknown):
					t.Errorf("%q gave %d, %v; want ErrUnknown", name, n, err)
				}
				last = n
			}
			if got := s.Stats().Sequences; got != 1 {
				t.Errorf("got %d sequences in memory, want 1", got)
			}
			// The table of options compares names alike.
			mustCreate(t, s, sequence.CreateOptions{Name: "Videos", Cache: 3})
			if !c.same {
				mustCreate(t, s, sequence.CreateOptions{Name: "videos", Cache: 4})
			}
			infos, err := s.List(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range infos {
				if want := map[string]uint64{"Videos": 3, "videos": 4}[i.Name]; want != 0 && (i.Cache != want || !sequence.Typed(&i)) {
					t.Errorf("%q has CACHE %d (typed: %v), want %d", i.Name, i.Cache, sequence.Typed(&i), want)
				}
			}
		})
	}
}

func TestTablesThatCompareNamesDifferentlyAreRefusedWithTheRemedy(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 40})
	p.withOptions(t)
	p.exec(t, "ALTER TABLE sequence_options CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
	p.exec(t, "ALTER TABLE sequence CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci")
	s := p.open(t, patience(20*time.Second))
	n, err := s.Take(context.Background(), []byte("photos"), 1)
	var unfit *sequence.UnfitError
	if !errors.As(err, &unfit) {
		t.Fatalf("got %d, %v; want an UnfitError", n, err)
	}
	wantText(t, err, "sequence_options", "MODIFY `name` varchar(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci")
	if _, err := s.List(context.Background()); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("List: got %v, want ErrUnfit", err)
	}
	if _, err := s.Take(context.Background(), []byte("\xff"), 1); errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("got %v, want what is wrong with the tables", err)
	}
	p.exec(t, unfit.Remedy)
	if got := mustTake(t, s, "photos", 1); got != 41 {
		t.Errorf("mended, got %d, want 41", got)
	}
}

func TestSameTellsSpellingsFromSequences(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"Photos": 0, "albums": 0})
	s := p.open(t)
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"photos", "PHOTOS", true},
		{"Photos", "photos" + p.trailing(), true},
		{"albums", "albums", true},
		{"photos", "albums", false},
		{"photos", "none", false},
		{"none", "photos", false},
		{"none", "none", false},
	} {
		if got, err := s.Same(context.Background(), []byte(c.a), []byte(c.b)); err != nil || got != c.want {
			t.Errorf("Same(%q, %q) = %v, %v; want %v", c.a, c.b, got, err, c.want)
		}
	}
	closeNow(t, s)
	if _, err := s.Same(context.Background(), []byte("photos"), []byte("albums")); !errors.Is(err, sequence.ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
}

func TestStrangeNamesAreData(t *testing.T) {
	p := newPlace(t)
	p.exec(t, "CREATE TABLE sequence (name varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, id bigint unsigned NOT NULL) ENGINE=InnoDB")
	s := p.open(t)
	for _, name := range []string{
		"it's", `back\slash`, `"double"`, "`tick`", "%", "_", "a;b", "-- x", "' OR '1'='1", "\x00nul", "new\nline", "\u00e9\u4e2d\U0001F4F7", "?", "0",
	} {
		mustCreate(t, s, sequence.CreateOptions{Name: name, Cache: 3})
		for want := uint64(1); want <= 5; want++ {
			if got := mustTake(t, s, name, 1); got != want {
				t.Errorf("%q gave %d, want %d", name, got, want)
			}
		}
		if dropped, err := s.Drop(context.Background(), []byte(name), false); err != nil || dropped == nil {
			t.Errorf("Drop(%q) = %v, %v; want true", name, dropped, err)
		}
	}
	for _, name := range []string{"", "\xff", "\xc3(", strings.Repeat("n", 65), strings.Repeat("n", 100000)} {
		if _, err := s.Take(context.Background(), []byte(name), 1); !errors.Is(err, sequence.ErrUnknown) {
			t.Errorf("Take(%.20q): got %v, want ErrUnknown", name, err)
		}
	}
}

func TestNameOfATableNeedsNoCare(t *testing.T) {
	p := newPlace(t)
	schema := "odd`sch'ema " + p.schema
	p.exec(t, "CREATE DATABASE "+define.Quote(schema))
	defer p.exec(t, "DROP DATABASE "+define.Quote(schema))
	s := p.open(t, func(o *sequence.Options) {
		o.Servers[0].Database, o.Servers[0].Table, o.CreateTable = schema, "my`seq'table", true
	})
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Cache: 4})
	if got := mustTake(t, s, "photos", 1); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
	if _, err := s.Drop(context.Background(), []byte("photos"), false); err != nil {
		t.Errorf("Drop: %v", err)
	}
}

func TestRowInsertedByAnApplicationIsKnownWithinASecond(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	s := p.open(t)
	name := []byte("photos")
	if exists, err := s.Exists(context.Background(), name); err != nil || exists {
		t.Fatalf("Known = %v, %v; want false", exists, err)
	}
	p.exec(t, "INSERT INTO sequence VALUES ('photos', 100)")
	eventually(t, "the row is seen", func() bool {
		exists, err := s.Exists(context.Background(), name)
		return err == nil && exists
	})
	if got := mustTake(t, s, "photos", 1); got != 101 {
		t.Errorf("got %d, want 101", got)
	}
}

func TestUnknownNamesAreNotAskedForAgainAndAgain(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	s := p.open(t)
	if _, err := s.Exists(context.Background(), []byte("photos")); err != nil {
		t.Fatal(err)
	}
	var before, after uint64
	queries := func(n *uint64) {
		t.Helper()
		conn, err := sequence.Inside(s).First().Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if err := conn.QueryRowContext(context.Background(), "SHOW SESSION STATUS LIKE 'Questions'").Scan(new(string), n); err != nil {
			t.Fatal(err)
		}
	}
	sequence.Inside(s).First().Pool().SetMaxOpenConns(1) // so that its own count is all of ours
	queries(&before)
	for range 2000 {
		if _, err := s.Take(context.Background(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnknown) {
			t.Fatalf("got %v, want ErrUnknown", err)
		}
	}
	queries(&after)
	if after-before > 20 {
		t.Errorf("2000 takes of an unknown sequence ran %d statements, want a few", after-before)
	}
	for i := range 3 * sequence.MostUnknown {
		sequence.Inside(s).NoSequence(fmt.Sprint(i))
	}
	if got := sequence.Inside(s).Unknown(); got > sequence.MostUnknown {
		t.Errorf("%d unknown names are remembered, want at most %d", got, sequence.MostUnknown)
	}
}

func TestListShowsTheTableAndWhatIsInMemory(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 10, "Albums": 20, "zoo": 18446744073709551615})
	s := p.open(t, steadySize(100))
	mustTake(t, s, "photos", 3)
	settled(t, s, "photos")
	got, err := s.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	const end = 1<<64 - 1
	want := []sequence.Info{
		{Name: "Albums", Next: 21, Cache: 100, End: end, ToEnd: sequence.Never, CachedFor: sequence.Never, Skew: sequence.Never},
		{Name: "photos", Next: 14, Cached: 97, Cache: 100, End: end, ToEnd: sequence.Never},
		{Name: "zoo", Cache: 1, End: end, Used: 100, ToEnd: sequence.Never, CachedFor: sequence.Never, Skew: sequence.Never},
	}
	for i := range got {
		if i == 1 && got[i].Rate > 0 && got[i].CachedFor < got[i].Skew && got[i].Skew < sequence.Never {
			got[i].Rate, got[i].CachedFor, got[i].Skew = 0, 0, 0 // of this moment
		}
		if i == 1 && time.Since(got[i].Reserved) < time.Hour {
			got[i].Reserved = time.Time{}
		}
		if i < 2 && got[i].Used > 0 && got[i].Used < 1e-9 {
			got[i].Used = 0
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	stats := s.Stats()
	if stats.Given != 3 || stats.Cached != 97 || stats.Reserved != 100 || reservations(s, sequence.ReservedOK) != 1 || stats.Waits != 1 || stats.Sequences != 1 {
		t.Errorf("got %+v, want 3 given and 97 held of the 100 of one reservation", stats)
	}
}

func TestOptionsOutOfRangeAreRefused(t *testing.T) {
	good := sequence.ServerOptions{Addr: "127.0.0.1:3306", Database: "app"}
	for name, o := range map[string]sequence.Options{
		"no server":            {},
		"two servers":          {Servers: []sequence.ServerOptions{good, good}},
		"a group of several":   {Servers: []sequence.ServerOptions{good, {Database: "app", Nodes: []sequence.Node{{Addr: "127.0.0.1:1"}, {Addr: "127.0.0.1:2"}}}}},
		"no address":           {Servers: []sequence.ServerOptions{{Database: "app"}}},
		"no database":          {Servers: []sequence.ServerOptions{{Addr: "127.0.0.1:3306"}}},
		"network":              {Servers: []sequence.ServerOptions{{Network: "udp", Addr: "127.0.0.1:3306", Database: "app"}}},
		"negative dial":        {Servers: []sequence.ServerOptions{{DialTimeout: -1, Addr: "127.0.0.1:3306", Database: "app"}}},
		"long table name":      {Servers: []sequence.ServerOptions{{Addr: "127.0.0.1:3306", Database: "app", Table: strings.Repeat("t", 54)}}},
		"negative cover":       {Servers: []sequence.ServerOptions{good}, Tuning: sequence.Tuning{OutageCover: -1}},
		"negative allocate":    {Servers: []sequence.ServerOptions{good}, Tuning: sequence.Tuning{AllocateTimeout: -1}},
		"unheard-of durabilty": {Servers: []sequence.ServerOptions{good}, Durability: "eventual"},
	} {
		if _, err := sequence.New(o); !errors.Is(err, define.ErrBadOption) {
			t.Errorf("%s: got %v, want ErrBadOption", name, err)
		}
	}
}

func TestALookupKeepsItsNameWhenItsCallerGivesUp(t *testing.T) {
	s := newPlace(t).withTable(t, map[string]uint64{"photos": 0}).open(t)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for i := range 200 {
		ghost := fmt.Sprintf("%06d", i)
		name := []byte(ghost)
		_, err := s.Take(gone, name, 1)
		copy(name, "photos") // the caller's memory is used for the next command
		if !errors.Is(err, context.Canceled) && !errors.Is(err, sequence.ErrUnknown) {
			t.Fatalf("Take without patience: got %v, want Canceled or ErrUnknown", err)
		}
		if exists, err := s.Exists(context.Background(), []byte(ghost)); exists || err != nil {
			t.Fatalf("%s is known: %v, %v; it was never made", ghost, exists, err)
		}
	}
}
