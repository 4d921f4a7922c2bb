package sequence_test

import (
	"errors"
	"strings"
	"testing"

	"seqproxy/sequence"
)

// A new server is a physical copy of a member, as one is made of the last backup, and is not added
// yet. A proxy that begins has it in its configuration, before the member that it is a copy of.
// It reaches that member, or does not.
func TestACopyOfAMemberGivesNoneOfItsNumbers(t *testing.T) {
	for _, user := range []string{"root", "nobody"} {
		t.Run("as "+user, func(t *testing.T) { copyOfAMember(t, user) })
	}
}

func copyOfAMember(t *testing.T, user string) {
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
	o.Servers[1].User = user
	fresh := openWith(t, o, blocks(100), steadySize(10))
	for range 40 {
		if t.Failed() {
			return
		}
		book.take(t, "the one that was there", old, "photos", 10)
		for range 10 {
			n, err := fresh.Take(t.Context(), []byte("photos"), 1)
			if err != nil {
				if !errors.Is(err, sequence.ErrUnfit) {
					t.Errorf("got %v, want ErrUnfit", err)
				}
				return
			}
			book.add(t, "the one that begins", n, 1)
		}
	}
}

// Two of those that are configured say that they are one member, and neither stands where the plan
// has it. Or one says so that stands where the plan has another member.
func TestTwoServersThatMayBeOneMemberGiveNoNumbers(t *testing.T) {
	f := newFleet(t, 3)
	old := f[:2].open(t, blocks(100), steadySize(10))
	createOn(t, old, "photos")
	mustTake(t, old, "photos", 1)
	settled(t, old, "photos")
	f[2].becomes(t, f[0])
	renamed := f[0].options()
	renamed.Servers[0].Addr = strings.Replace(renamed.Servers[0].Addr, "127.0.0.1", "localhost", 1)
	refused := func(all ...sequence.Options) {
		t.Helper()
		o := sequence.Options{Tuning: sequence.Tuning{NoDirectWriters: true}}
		for i := range all {
			o.Servers = append(o.Servers, all[i].Servers...)
		}
		took, err := openWith(t, o, blocks(100)).TakeRun(t.Context(), []byte("photos"), 1)
		if !errors.Is(err, sequence.ErrUnfit) {
			t.Fatalf("got %+v, %v, want ErrUnfit", took, err)
		}
		wantText(t, err, "the same sequence server, or one is a copy", "DELETE FROM")
	}
	refused(renamed, f[1].options(), f[2].options())

	f[2].exec(t, "DELETE FROM sequence_member")
	mustTake(t, f.open(t, blocks(100)), "photos", 1)

	f[1].exec(t, "DELETE FROM sequence_member")
	f[1].becomes(t, f[0])
	refused(f[1].options())
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
