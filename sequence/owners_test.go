package sequence_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
)

// A column without a schema is one of every schema, so it overlaps the same column with one. Two
// sequences would give one table the same keys.
func TestAColumnOwnsASequenceWithOrWithoutItsSchema(t *testing.T) {
	every, album := define.Column{Table: "photos", Column: "id"}, define.Column{Schema: "album0", Table: "photos", Column: "id"}
	other := define.Column{Schema: "album1", Table: "photos", Column: "id"}
	for name, test := range map[string]struct {
		first, second define.Column
		refused       bool
	}{
		"every schema, then one":   {every, album, true},
		"one schema, then every":   {album, every, true},
		"one schema twice":         {album, album, true},
		"every schema twice":       {every, every, true},
		"one schema, then another": {album, other, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPlace(t).withTable(t, nil).open(t)
			mustCreate(t, s, sequence.CreateOptions{Name: "first", OwnedBy: test.first})
			mustCreate(t, s, sequence.CreateOptions{Name: "later"})
			_, created := s.Create(t.Context(), sequence.CreateOptions{Name: "second", OwnedBy: test.second})
			_, altered := s.Alter(t.Context(), []byte("later"), sequence.Alteration{OwnedBy: &test.second})
			if !test.refused {
				if created != nil {
					t.Errorf("CREATE: %v", created)
				}
				return
			}
			for _, err := range []error{created, altered} {
				if !errors.Is(err, define.ErrBadOption) {
					t.Errorf("got %v, want ErrBadOption", err)
				}
				wantText(t, err, test.first.String()+` owns sequence "first"`, "ALTER SEQUENCE `first` OWNED BY NONE")
			}
			mustAlter(t, s, "first", sequence.Alteration{OwnedBy: &test.first}) // its own
			mustAlter(t, s, "first", sequence.Alteration{OwnedBy: &define.Column{}})
			mustAlter(t, s, "later", sequence.Alteration{OwnedBy: &test.second})
			// The other schema alone is no way around it.
			wider := test.first
			if _, err := s.Alter(t.Context(), []byte("first"), sequence.Alteration{OwnedBy: &wider}); !errors.Is(err, define.ErrBadOption) {
				t.Errorf("the first again: got %v, want ErrBadOption", err)
			}
		})
	}
}

// Two people at two proxies let one column own two sequences at the same moment: one of them is
// refused.
func TestOfTwoAtTheSameMomentOneLetsTheColumnOwnItsSequence(t *testing.T) {
	owner := define.Column{Table: "photos", Column: "id"}
	create := func(s *sequence.Sequences, name string) error {
		_, err := s.Create(t.Context(), sequence.CreateOptions{Name: name, OwnedBy: owner})
		return err
	}
	alter := func(s *sequence.Sequences, name string) error {
		_, err := s.Alter(t.Context(), []byte(name), sequence.Alteration{OwnedBy: &owner})
		return err
	}
	for name, test := range map[string]struct {
		there  []string
		first  func(s *sequence.Sequences, name string) error
		second func(s *sequence.Sequences, name string) error
	}{
		"two CREATE":         {nil, create, create},
		"CREATE and ALTER":   {[]string{"b"}, create, alter},
		"two ALTER, of both": {[]string{"a", "b"}, alter, alter},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t).withTable(t, map[string]uint64{"other": 0})
			a, b, holder := p.open(t), p.open(t), p.open(t)
			for _, name := range test.there {
				mustCreate(t, holder, sequence.CreateOptions{Name: name})
			}
			var all sync.WaitGroup
			var first, second error
			err := sequence.Inside(holder).ChangeWith(t.Context(), "other", func() error {
				all.Go(func() { first = test.first(a, "a") })
				all.Go(func() { second = test.second(b, "b") })
				eventually(t, "both wait for the lock of definitions", func() bool {
					var waiting int
					err := p.db.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE ?", "INSERT INTO%"+p.schema+"%version%").Scan(&waiting)
					return err == nil && waiting == 2
				})
				return nil
			})
			if all.Wait(); err != nil {
				t.Fatal(err)
			}
			refused := first
			if refused == nil {
				refused = second
			}
			if (first == nil) == (second == nil) || !errors.Is(refused, define.ErrBadOption) {
				t.Errorf("got %v and %v, want that one is refused", first, second)
			}
			wantText(t, refused, "photos.id owns sequence")
		})
	}
}

// The tables come back empty, or older, under a proxy: a volume is lost, or a dump is loaded. A
// column still owns its sequence, so that no shard makes the key.
func TestAColumnStillOwnsASequenceThatTheServerHasLost(t *testing.T) {
	p := newPlace(t).withAll(t, nil)
	inState := func(dir string) func(*sequence.Options) { return func(o *sequence.Options) { o.StateDir = dir } }
	dir := t.TempDir()
	s := p.open(t, inState(dir))
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", OwnedBy: define.Column{Table: "photos", Column: "id"}})
	has := func(s *sequence.Sequences, want ...string) { t.Helper(); wantOwners(t, s, want...) }
	has(s, "photos.id")
	for _, table := range []string{"sequence", "sequence_options", "sequence_version", "sequence_proxy"} {
		p.exec(t, "DELETE FROM "+table)
	}
	other := p.open(t)
	mustCreate(t, other, sequence.CreateOptions{Name: "albums", OwnedBy: define.Column{Table: "albums", Column: "id"}})
	mustCreate(t, other, sequence.CreateOptions{Name: "people", OwnedBy: define.Column{Table: "people", Column: "id"}})
	has(s, "albums.id", "people.id", "photos.id")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Drop(t.Context(), []byte("people"), false); err != nil {
		t.Fatal(err)
	}
	next := p.open(t, inState(dir))
	mustTake(t, next, "albums", 1)
	has(next, "albums.id", "photos.id")
	mustCreate(t, next, sequence.CreateOptions{Name: "photos", Kind: kindOf(t, "BIT_REVERSED")})
	has(next, "albums.id")
}

// wantOwners waits until these columns own sequences.
func wantOwners(t *testing.T, s *sequence.Sequences, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprint(want, " own sequences"), func() bool { return slices.Equal(ownersOf(s), want) })
}

// ownersOf are the columns that own sequences.
func ownersOf(s *sequence.Sequences) (columns []string) {
	if now := s.Owners(); now != nil {
		for _, o := range now.List {
			columns = append(columns, o.Column.String())
		}
	}
	return columns
}

// A fail-over loses the ALTER SEQUENCE that was made last. The column still owns its sequence, so
// that no shard makes the key.
func TestAColumnStillOwnsASequenceWhoseOwnerAFailOverHasLost(t *testing.T) {
	e := startEstate(t, 2, "photos")
	m := e.join(t, "a", new(given))
	mustAlter(t, m.Sequences, "photos", sequence.Alteration{OwnedBy: &define.Column{}})
	m.take(t, "a", "photos", 1)
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	owner := define.Column{Table: "photos", Column: "id"}
	mustAlter(t, m.Sequences, "photos", sequence.Alteration{OwnedBy: &owner})
	wantOwners(t, m.Sequences, "photos.id")
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	m.take(t, "a", "photos", 50)
	m.wantLog(t, "owner of a sequence lost")
	if got := ownersOf(m.Sequences); len(got) != 1 {
		t.Errorf("%q own sequences, want photos.id", got)
	}
	mustAlter(t, m.Sequences, "photos", sequence.Alteration{OwnedBy: &owner}) // the way out
	wantOwners(t, e.join(t, "another", m.given).Sequences, "photos.id")
	mustAlter(t, m.Sequences, "photos", sequence.Alteration{OwnedBy: &define.Column{}})
	wantOwners(t, m.Sequences)
}
