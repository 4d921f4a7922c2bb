package sequence_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"seqproxy/sequence"
)

// A new server is a physical copy of a member, as one is made of the last backup, and is not added
// yet. A proxy that begins has it in its configuration, before the member that it is a copy of.
// It reaches that member, or does not, or has the copy in its place: then it knows the member by
// the plan alone.
func TestACopyOfAMemberGivesNoneOfItsNumbers(t *testing.T) {
	for how, reaches := range map[string]func(o *sequence.Options){
		"beside the member":                         func(*sequence.Options) {},
		"beside the member, which is not reached":   func(o *sequence.Options) { o.Servers[1].User = "nobody" },
		"in place of the member":                    func(o *sequence.Options) { o.Servers = slices.Delete(o.Servers, 1, 2) },
		"in place of the member, and after another": func(o *sequence.Options) { o.Servers = []sequence.ServerOptions{o.Servers[2], o.Servers[0]} },
	} {
		t.Run(how, func(t *testing.T) { copyOfAMember(t, reaches) })
	}
}

func copyOfAMember(t *testing.T, reaches func(o *sequence.Options)) {
	f := newFleet(t, 2)
	var book ledger
	old := f.open(t, blocks(100), steadySize(10))
	createOn(t, old, "photos")
	book.take(t, "before the copy", old, "photos", 250)
	settled(t, old, "photos")

	copied := newFleet(t, 1)[0]
	copied.becomes(t, f[0])

	o := sequence.Options{Tuning: sequence.Tuning{NoDirectWriters: true}}
	for _, p := range []place{copied, f[0], f[1]} {
		o.Servers = append(o.Servers, p.options().Servers...)
	}
	reaches(&o)
	fresh := openWith(t, o, blocks(100), steadySize(10))
	for range 40 {
		if t.Failed() {
			return
		}
		book.take(t, "the one that was there", old, "photos", 10)
		for range 10 {
			n, err := fresh.Take(t.Context(), []byte("photos"), 1)
			if err != nil {
				t.Fatal(err)
			}
			book.add(t, "the one that begins", n, 1)
		}
	}
}

// One that says it is another member than the one that the plan has at its address is refused, and
// the others give numbers.
func TestACopyAtTheAddressOfAnotherMemberGivesNoNumbers(t *testing.T) {
	f := newFleet(t, 2)
	old := f.open(t, blocks(100), steadySize(10))
	createOn(t, old, "photos")
	var book ledger
	book.take(t, "before the copy", old, "photos", 250)
	settled(t, old, "photos")
	f[1].becomes(t, f[0])
	fresh := f[1:].open(t, blocks(100), steadySize(10))
	book.take(t, "the one that begins", fresh, "photos", 250)
	eventually(t, "the copy alone is left out", func() bool {
		book.take(t, "the one that begins", fresh, "photos", 20)
		return !slices.ContainsFunc(sequence.Inside(fresh).Servers(), func(v sequence.Server) bool {
			return v.Away() != (v.Address() == f[1].server.Addr())
		})
	})
}

// becomes copies what another server has, as a physical copy has it.
func (p place) becomes(t *testing.T, from place) {
	t.Helper()
	for _, table := range memberTables {
		rows, err := from.db.Query("SELECT * FROM " + table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		p.exec(t, "DELETE FROM "+table)
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			p.exec(t, "INSERT INTO "+table+" VALUES (?"+strings.Repeat(", ?", len(columns)-1)+")", values...)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
