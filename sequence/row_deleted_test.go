package sequence_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
)

// insertOf is the statement that a finding about a row that was deleted by hand proposes.
func insertOf(t *testing.T, err error) string {
	t.Helper()
	var unfit *sequence.UnfitError
	if !errors.As(err, &unfit) {
		t.Fatalf("got %v, want a finding", err)
	}
	statement, _, ok := strings.Cut(unfit.Remedy, " on "+unfit.Server)
	if !ok || !strings.HasPrefix(statement, "INSERT INTO ") {
		t.Fatalf("the remedy is %q", unfit.Remedy)
	}
	return statement
}

// Somebody deletes the row on one of several servers, whose numbers another proxy has cached, and
// runs the proposed repair: that of the log and that of an error, with both kinds of shares.
func TestTheRowThatIsProposedForADeletedOneRepeatsNothing(t *testing.T) {
	for name, kind := range map[string]func(*sequence.Options){"blocks": blocks(50), "steps": inSteps} {
		for _, said := range []string{"at a reservation", "at a reservation again", "by a statement about the sequence"} {
			t.Run(name+", "+said, func(t *testing.T) {
				f := newFleet(t, 2)
				open := func() *sequence.Sequences { return f.open(t, kind, steadySize(40), patience(30*time.Second)) }
				holder, other := open(), open()
				createOn(t, holder, "photos")
				book := make(map[uint64]string)
				got := func(who string, number uint64) {
					t.Helper()
					if before := book[number]; before != "" {
						t.Fatalf("%s got %d, which %s got", who, number, before)
					}
					book[number] = who
				}
				take := func(who string, s *sequence.Sequences, n int) {
					t.Helper()
					for range n {
						got(who, mustTake(t, s, "photos", 1))
					}
				}
				take("other", other, 1)
				settled(t, other, "photos")
				v := sequence.Inside(holder).Members()[1]
				for end := 0; ; end++ { // it has cached numbers of the second one alone
					take("holder", holder, 1)
					settled(t, holder, "photos")
					if v.Share().Has(sequence.Inside(holder).Cache("photos").Highest()) {
						break
					} else if end > 1000 {
						t.Fatal("it gets none of them")
					}
				}
				f[1].exec(t, "DELETE FROM sequence WHERE name = 'photos'")

				late := open()
				err := sequence.Inside(late).MeetPlan(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				lacks := sequence.Inside(late).Members()[1]
				reserve := func() error {
					_, err := lacks.ReserveAsMember(t.Context(), "photos", 5, 1)
					return err
				}
				switch said {
				case "at a reservation":
					err = reserve()
				case "at a reservation again":
					if err = reserve(); err != nil {
						err = lacks.Lacks("photos")
					}
				default:
					comment := "of people"
					_, err = late.Alter(t.Context(), []byte("photos"), sequence.Alteration{Comment: &comment})
				}
				f[1].exec(t, insertOf(t, err))

				last := open() // that has not seen that the row was away
				if err = sequence.Inside(last).MeetPlan(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					g, err := sequence.Inside(last).Members()[1].ReserveAsMember(t.Context(), "photos", 40, 1)
					if err != nil {
						t.Fatal(err)
					}
					for n, ok := g.Seg.Take(1); ok; n, ok = g.Seg.Take(1) {
						got("last", n)
					}
				}
				take("holder", holder, 300)
				take("other", other, 300)
			})
		}
	}
}

// The row is not put back, and the next change of the servers begins above what proxies have cached
// of it. An orderly DROP does not count that far.
func TestAChangeOfTheServersIsAboveTheNumbersOfADeletedRow(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 100, "albums": 0})
	a, holder := e.open(t, blocks(1000), steadySize(5), patience(30*time.Second)), e.open(t, steadySize(500), patience(30*time.Second))
	e.change(t, a, sequence.PlanChange{Add: e.addr(1)})
	if _, err := a.Drop(t.Context(), []byte("albums"), false); err != nil {
		t.Fatal(err)
	}
	given := newGivenEver()
	eventually(t, "it has cached numbers of the second one", func() bool {
		given.add(t, "photos", mustTake(t, holder, "photos", 1))
		settled(t, holder, "photos")
		return sequence.Inside(holder).Members()[1].Share().Has(sequence.Inside(holder).Cache("photos").Highest())
	})
	e.places[1].exec(t, "DELETE FROM sequence WHERE name = 'photos'")
	e.change(t, a, sequence.PlanChange{Add: e.addr(2)})
	after := e.open(t, steadySize(500), patience(30*time.Second))
	for range 3 {
		first := mustTake(t, after, "photos", 400) // so that each member gives some
		for n := range uint64(400) {
			given.add(t, "photos", first+n)
		}
		settled(t, after, "photos")
	}
	for range 600 {
		given.add(t, "photos", mustTake(t, holder, "photos", 1))
	}
	if made := createOn(t, a, "albums"); made.First > 10_000 {
		t.Errorf("what was dropped begins again at %d", made.First)
	}
}

// The one server that knows the sequence has come to the end of its column, so that CREATE begins
// to make what is missing on the other.
func TestCreateIfNotExistsMakesNoRowAgainThatWasDeleted(t *testing.T) {
	f := newFleet(t, 2)
	s := f.open(t, blocks(50))
	createOn(t, s, "photos")
	f[0].exec(t, "UPDATE sequence SET id = 18446744073709551615 WHERE name = 'photos'")
	f[1].exec(t, "DELETE FROM sequence WHERE name = 'photos'")
	made, err := s.Create(t.Context(), sequence.CreateOptions{Name: "photos", IfNotExists: true})
	if err != nil || !made.Existed {
		t.Errorf("got %+v, %v; want what exists", made, err)
	}
	var rows int
	if err := f[1].db.QueryRow("SELECT COUNT(*) FROM sequence WHERE name = 'photos'").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v; want none, as it could repeat what the deleted one gave", rows, err)
	}
}

// Somebody deletes all rows, or one, and NEXTVAL and tickets make unknown sequences. A proxy that
// has not used the sequence is asked for a number of it, while another one has some in memory.
func TestARowThatWasDeletedIsNotMadeAgainByItself(t *testing.T) {
	for _, gone := range []string{"DELETE FROM sequence WHERE name = 'photos'", "TRUNCATE sequence"} {
		p := newPlace(t).withAll(t, nil)
		creates := func(o *sequence.Options) { o.CreateUnknown = true }
		a := p.open(t, steadySize(100), creates)
		mustTake(t, a, "photos", 50)
		settled(t, a, "photos")
		p.exec(t, gone)
		late := p.open(t, steadySize(100), creates)
		n, err := late.Take(t.Context(), []byte("photos"), 1)
		if !errors.Is(err, sequence.ErrUnfit) {
			t.Fatalf("%s: got %d, %v, want ErrUnfit", gone, n, err)
		}
		wantText(t, err, "was deleted", "CREATE SEQUENCE `photos` START WITH n")
		if n, _, err := late.AdvanceOrCreate(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
			t.Errorf("%s: a ticket gets %d, %v, want ErrUnfit", gone, n, err)
		}
		mustCreate(t, late, sequence.CreateOptions{Name: "photos", Start: 1000})
		if n := mustTake(t, late, "photos", 1); n != 1000 {
			t.Errorf("%s: got %d, want 1000", gone, n)
		}
	}
}

// Somebody makes the tables anew, as test suites do with their schema. A proxy that lives on makes
// its sequence again by itself, above all that it gave.
func TestASequenceOfTablesThatWereMadeAnewIsMadeByItself(t *testing.T) {
	p := newPlace(t).withAll(t, nil)
	s := p.open(t, steadySize(100), func(o *sequence.Options) { o.CreateUnknown = true })
	before := mustTake(t, s, "photos", 50) + 49
	settled(t, s, "photos")
	p.exec(t, "DELETE FROM sequence")
	p.exec(t, "DELETE FROM sequence_options")
	if err := s.Flush(t.Context(), []byte("photos")); err != nil && !errors.Is(err, sequence.ErrUnknown) {
		t.Fatal(err)
	}
	var n uint64
	eventually(t, "the sequence is there again", func() (made bool) {
		var err error
		n, err = s.Take(t.Context(), []byte("photos"), 1)
		return err == nil
	})
	if n <= before {
		t.Errorf("got %d, want a number above %d", n, before)
	}
}

// Somebody deletes the row and makes the sequence again, above the keys of its column, on a proxy
// that has not used it. Another one has numbers above those in memory.
func TestACreateInPlaceOfADeletedRowGivesNoNumberThatOthersHave(t *testing.T) {
	p := newPlace(t).withAll(t, nil)
	a, b := p.open(t, steadySize(100)), p.open(t, steadySize(100))
	mustCreate(t, a, sequence.CreateOptions{Name: "photos"})
	var book ledger
	book.take(t, "a", a, "photos", 50)
	settled(t, a, "photos")
	if err := sequence.Inside(a).Following().Acquire(t.Context()); err != nil { // it may find the row gone
		t.Fatal(err)
	}
	p.exec(t, "DELETE FROM sequence WHERE name = 'photos'")
	made, err := b.Create(t.Context(), sequence.CreateOptions{Name: "photos", Floor: 50})
	if err == nil {
		book.take(t, "b", b, "photos", 50)
		book.take(t, "a", a, "photos", 50)
		t.Fatalf("got %+v, want that it is refused", made)
	}
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Fatal(err)
	}
	wantText(t, err, "was deleted", "other proxies may have numbers of it in memory", "FLUSH SEQUENCES on every proxy", "CREATE SEQUENCE `photos` START WITH n")
	book.take(t, "a", a, "photos", 10)
	sequence.Inside(a).FollowAgain()
	for _, s := range []*sequence.Sequences{a, b} {
		if err := s.Flush(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	mustCreate(t, b, sequence.CreateOptions{Name: "photos", Floor: 60, Start: 61})
	book.take(t, "b", b, "photos", 100)
	book.take(t, "a", a, "photos", 100)

	settled(t, b, "photos")
	p.exec(t, "DELETE FROM sequence WHERE name = 'photos'")
	closeNow(t, a)
	if made := mustCreate(t, b, sequence.CreateOptions{Name: "photos", Floor: 60}); made.First <= 260 {
		t.Errorf("without others it begins at %d", made.First)
	}
}

// A sequence was dropped before it gave a number, or since it was moved. It is made again, by
// people or by itself.
func TestASequenceThatWasDroppedUnusedIsMadeAgain(t *testing.T) {
	p := newPlace(t).withAll(t, nil)
	creates := func(o *sequence.Options) { o.CreateUnknown = true }
	s := p.open(t, creates)
	mustTake(t, p.open(t, creates), "others", 1)
	for range 2 {
		mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
		if _, err := s.Drop(t.Context(), []byte("photos"), false); err != nil {
			t.Fatal(err)
		}
	}
	wantTaken(t, s, "photos", 1)
	if _, ok, err := s.SetValue(t.Context(), []byte("photos"), 1_000_000, true); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := s.Drop(t.Context(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	wantTaken(t, s, "photos", 1_000_001)
}

// Somebody deletes the row on the one of two servers that has given the highest numbers, and makes
// the sequence anew on a proxy that has not used it.
func TestASequenceWhoseRowIsDeletedOnOneServerIsNotMadeAnew(t *testing.T) {
	for name, anew := range map[string]func(s *sequence.Sequences) error{
		"DROP and CREATE": func(s *sequence.Sequences) error {
			if _, err := s.Drop(t.Context(), []byte("photos"), false); err != nil {
				return err
			}
			_, err := s.Create(t.Context(), sequence.CreateOptions{Name: "photos"})
			return err
		},
		"CREATE OR REPLACE": func(s *sequence.Sequences) error {
			_, err := s.Create(t.Context(), sequence.CreateOptions{Name: "photos", OrReplace: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			s := f.open(t, blocks(100), steadySize(50))
			createOn(t, s, "photos")
			var book ledger
			book.take(t, "before", s, "photos", 450)
			settled(t, s, "photos")
			ids := f.ids(t, "photos")
			f[slices.Index(ids, slices.Max(ids))].exec(t, "DELETE FROM sequence WHERE name = 'photos'")
			fresh := f.open(t, blocks(100), steadySize(50))
			if err := anew(fresh); err == nil {
				book.take(t, "after", fresh, "photos", 450)
			} else {
				insertOf(t, err)
			}
		})
	}
}

// Somebody deletes the row of a sequence whose keys are of the time, or of no counter, while others
// use it. It has no number of that row, and cannot say where it goes on.
func TestASequenceWhoseRowGivesNothingIsMadeAgainAfterThatWasDeleted(t *testing.T) {
	for _, kind := range []string{"SNOWFLAKE", "UUID", "FORMAT 'PO-{yyyyMMdd}-{n:6}' RESET DAILY"} {
		p := newPlace(t)
		k := kindOf(t, kind)
		mustCreate(t, p.open(t), sequence.CreateOptions{Name: "photos", Kind: k})
		mustTake(t, p.open(t, func(o *sequence.Options) { o.CreateUnknown = true }), "others", 1)
		p.exec(t, "DELETE FROM sequence WHERE name = 'photos#counter'")
		mustCreate(t, p.open(t), sequence.CreateOptions{Name: "photos", Kind: k})
	}
}

// Many ask for a number of a sequence whose row was deleted: not each of them opens a transaction.
func TestThatASequenceIsNotMadeByItselfIsRememberedForAMoment(t *testing.T) {
	p := newPlace(t).withAll(t, nil)
	creates := func(o *sequence.Options) { o.CreateUnknown = true }
	first := p.open(t, creates)
	mustTake(t, first, "photos", 1)
	if err := first.Close(t.Context()); err != nil { // else it may reserve the number that is wanted below
		t.Fatal(err)
	}
	p.exec(t, "DELETE FROM sequence")
	late := p.open(t, creates, func(o *sequence.Options) {
		sequence.ChangeTiming(o, func(t *sequence.Timing) { t.Unknown = time.Hour })
	})
	sequence.Inside(late).StopFollowing()
	defer sequence.Inside(late).FollowAgain()
	for range 2 {
		if n, err := late.Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
			t.Errorf("got %d, %v, want ErrUnfit", n, err)
		}
		if n, _, err := late.AdvanceOrCreate(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
			t.Errorf("a ticket gets %d, %v, want ErrUnfit", n, err)
		}
		p.exec(t, "DELETE FROM sequence_options") // else each of them would be refused anew
	}
	mustCreate(t, late, sequence.CreateOptions{Name: "photos", Start: 1000})
	wantTaken(t, late, "photos", 1000)
}

// An ALTER has reached one of two servers when its proxy died, and then somebody deletes the row
// there. The next proxy takes that for no DROP.
func TestARowThatIsDeletedWhereTheLastChangeIsWasNotDropped(t *testing.T) {
	f := newFleet(t, 2)
	createOn(t, f.open(t), "photos")
	f[0].exec(t, "UPDATE sequence_options SET version = version + 10, comment = 'of people' WHERE name = 'photos'")
	row := f[0].id(t, "photos")
	f[0].exec(t, "DELETE FROM sequence WHERE name = 'photos'")
	n, err := f.open(t).Take(t.Context(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Fatalf("got %d, %v, want ErrUnfit", n, err)
	}
	f[0].exec(t, insertOf(t, err))
	if is := f[0].id(t, "photos"); is < row {
		t.Errorf("the row is put back at %d, and stood at %d", is, row)
	}
	mustTake(t, f.open(t), "photos", 1)
}

// Somebody makes the row of a dropped sequence by hand, alters the sequence, and deletes the row
// again.
func TestARowThatWasMadeByHandAfterADropIsMissedToo(t *testing.T) {
	p := newPlace(t).withAll(t, nil)
	creates := func(o *sequence.Options) { o.CreateUnknown = true }
	s := p.open(t, creates)
	mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
	if _, err := s.Drop(t.Context(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	p.exec(t, "INSERT INTO sequence VALUES ('photos', 100)")
	comment := "of people"
	mustAlter(t, p.open(t), "photos", sequence.Alteration{Comment: &comment, Increment: ref(uint64(10))})
	wantTaken(t, p.open(t), "photos", 101)
	p.exec(t, "DELETE FROM sequence")
	if n, err := p.open(t, creates).Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %d, %v, want ErrUnfit", n, err)
	}
}

// A sequence is dropped while an application goes on to count in the table, and makes the row anew.
func TestARowThatWasMadeByHandAfterADropGoesOnAboveTheOldOne(t *testing.T) {
	for _, altered := range []bool{false, true} { // before it gives a number
		t.Run(fmt.Sprintf("altered %v", altered), func(t *testing.T) { goesOnAfterDrop(t, altered) })
	}
}

func goesOnAfterDrop(t *testing.T, altered bool) {
	p := newPlace(t).withAll(t, nil)
	s := p.open(t)
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Cache: 1})
	wantTaken(t, s, "photos", 1, 2, 3)
	if _, err := s.Drop(t.Context(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	p.exec(t, "INSERT INTO sequence VALUES ('photos', 1)")
	if altered {
		mustAlter(t, p.open(t), "photos", sequence.Alteration{Comment: ref("of people")})
	}
	given := make(map[uint64]bool)
	for range 3 {
		n := mustTake(t, p.open(t, steadySize(1)), "photos", 1)
		if n <= 3 || given[n] {
			t.Errorf("%d is given again", n)
		}
		given[n] = true
	}
}

// Somebody deletes the row of a sequence that a column owns. Made again without the column, it
// would leave the column's keys to each shard.
func TestASequenceInPlaceOfADeletedRowSaysWhatBecomesOfItsColumn(t *testing.T) {
	for name, kind := range map[string]string{"a plain one": "", "with keys of a kind": "FORMAT 'PO-{n:6}'"} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			column := define.Column{Schema: "app", Table: "photos", Column: "id"}
			asked := sequence.CreateOptions{Name: "photos", Increment: 10, OwnedBy: column}
			if kind != "" {
				asked = sequence.CreateOptions{Name: "photos", Kind: kindOf(t, kind), OwnedBy: column}
			}
			mustCreate(t, p.open(t), asked)
			made := func(s *sequence.Sequences, o sequence.CreateOptions, owner define.Column) {
				t.Helper()
				o.Name, o.Kind = "photos", asked.Kind
				mustCreate(t, s, o)
				if is, _, err := s.Describe(t.Context(), []byte("photos")); err != nil || is.OwnedBy != owner || is.Increment != 1 {
					t.Errorf("got %+v, %v; want the options of a new one, and the column %v", is, err, owner)
				}
			}
			deleted := "DELETE FROM sequence WHERE name LIKE 'photos%'"
			p.exec(t, deleted)
			late := p.open(t)
			o, err := late.Create(t.Context(), sequence.CreateOptions{Name: "photos", Start: 1001, Kind: asked.Kind})
			if !errors.Is(err, sequence.ErrUnfit) {
				t.Fatalf("without OWNED BY got %+v, %v, want ErrUnfit", o, err)
			}
			wantText(t, err, "was deleted", "CREATE SEQUENCE `photos`, with the kind that it had, START WITH n OWNED BY `app`.`photos`.`id`", "OWNED BY NONE")
			_, err = late.Create(t.Context(), sequence.CreateOptions{Name: "photos", Kind: asked.Kind})
			if wantText(t, err, "it was OWNED BY"); strings.Contains(err.Error(), "\n") {
				t.Errorf("without START, too: got two errors, %v", err)
			}
			made(late, sequence.CreateOptions{Start: 1001, OwnedBy: column}, column)
			p.exec(t, deleted)
			made(p.open(t), sequence.CreateOptions{Start: 3001, Unowned: true}, define.Column{})
			p.exec(t, deleted)
			made(p.open(t), sequence.CreateOptions{Start: 5001}, define.Column{})
			mustAlter(t, late, "photos", sequence.Alteration{OwnedBy: &column})
			p.exec(t, deleted)
			if _, err = p.open(t).Create(t.Context(), sequence.CreateOptions{Name: "photos", Start: 7001, Kind: asked.Kind, OrReplace: true}); !errors.Is(err, sequence.ErrUnfit) {
				t.Errorf("OR REPLACE without OWNED BY: got %v, want ErrUnfit", err)
			}
			made(p.open(t), sequence.CreateOptions{Start: 7001, OrReplace: true, Unowned: true}, define.Column{})
			mustAlter(t, late, "photos", sequence.Alteration{OwnedBy: &column})
			if _, err := late.Drop(t.Context(), []byte("photos"), false); err != nil {
				t.Fatal(err)
			}
			made(late, sequence.CreateOptions{}, define.Column{})
		})
	}
}

// Somebody deletes a row, and then a proxy starts. If the column owned no sequence for it, each
// shard would give its keys by AUTO_INCREMENT.
func TestAColumnOwnsASequenceWhoseRowWasDeletedAlsoAfterAStart(t *testing.T) {
	p := newPlace(t).withAll(t, nil)
	dir := t.TempDir()
	first := p.open(t, stateIn(dir))
	for _, name := range []string{"photos", "albums", "dropped"} {
		mustCreate(t, first, sequence.CreateOptions{Name: name, OwnedBy: define.Column{Schema: "app", Table: name, Column: "id"}})
	}
	if _, err := first.Drop(t.Context(), []byte("dropped"), false); err != nil {
		t.Fatal(err)
	}
	cutOff(t, first)
	p.exec(t, "DELETE FROM sequence WHERE name = 'photos'")

	core, logs := observer.New(zap.WarnLevel)
	second := p.open(t, stateIn(dir), func(o *sequence.Options) { o.Logger = zap.New(core) })
	owners := func(all []sequence.Owner) string {
		names := make([]string, 0, len(all))
		for _, o := range all {
			names = append(names, o.Sequence+" "+o.Column.String())
		}
		return strings.Join(names, ", ")
	}
	const want = "albums app.albums.id, photos app.photos.id"
	if known, err := second.LoadOwners(t.Context()); err != nil || owners(known.List) != want {
		t.Errorf("got %+v, %v; want %s", known, err, want)
	}
	eventually(t, "owners are kept", func() bool {
		kept := sequence.Inside(second).KeptOwners()
		return kept != nil && owners(kept.List) == want
	})
	if examined := second.Examine(t.Context(), nil)[0].Nodes[0]; owners(examined.Owners) != want {
		t.Errorf("an examination finds %+v, want %s", examined.Owners, want)
	}
	lines := logs.FilterMessage("sequence row gone").All()
	if len(lines) != 1 || lines[0].ContextMap()["sequence"] != "photos" || !strings.Contains(fmt.Sprint(lines[0].ContextMap()["remedy"]), "CREATE SEQUENCE `photos` START WITH") {
		t.Errorf("the log has %+v, want one line about photos, with what puts it back", lines)
	}
	// Proxies that were there before may have numbers of it.
	zoo := sequence.CreateOptions{Name: "zoo", OwnedBy: define.Column{Schema: "app", Table: "photos", Column: "id"}}
	if made, err := second.Create(t.Context(), zoo); !errors.Is(err, sequence.ErrBadOption) {
		t.Errorf("another sequence for the column: got %+v, %v, want ErrBadOption", made, err)
	}
	// Its keys were not looked at.
	if made, err := second.Create(t.Context(), sequence.CreateOptions{Name: "photos"}); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("without START WITH and OWNED BY got %+v, %v, want ErrUnfit", made, err)
	}
	mustCreate(t, second, sequence.CreateOptions{Name: "photos", Start: 1000, OwnedBy: define.Column{Schema: "app", Table: "photos", Column: "id"}})
	if known := second.Owners(); owners(known.List) != want {
		t.Errorf("after it was made again got %+v, want %s", known, want)
	}
}

// Somebody deletes a row, and the proxies are restarted by what makes the sequences at each start.
func TestIfNotExistsMakesNoSequenceWhoseRowWasDeleted(t *testing.T) {
	p := newPlace(t).withAll(t, nil)
	first := p.open(t, steadySize(100))
	mustCreate(t, first, sequence.CreateOptions{Name: "photos"})
	mustTake(t, first, "photos", 50)
	settled(t, first, "photos")
	closeNow(t, first)
	p.exec(t, "DELETE FROM sequence WHERE name = 'photos'")
	late := p.open(t, steadySize(100))
	for _, start := range []uint64{0, 1} {
		made, err := late.Create(t.Context(), sequence.CreateOptions{Name: "photos", Start: start, IfNotExists: true})
		if !errors.Is(err, sequence.ErrUnfit) {
			t.Fatalf("START WITH %d: got %+v, %v, want ErrUnfit", start, made, err)
		}
		wantText(t, err, "was deleted", "CREATE SEQUENCE `photos` START WITH n")
	}
	owned := sequence.CreateOptions{Name: "photos", IfNotExists: true, OwnedBy: define.Column{Schema: "app", Table: "photos", Column: "id"}, Floor: 60}
	if made := mustCreate(t, late, owned); made.First != 61 {
		t.Errorf("above the keys of its column: got %+v, want it to begin at 61", made)
	}
}
