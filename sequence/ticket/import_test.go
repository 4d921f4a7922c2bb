package ticket

import (
	"context"
	"strings"
	"testing"

	"seqproxy/sequence/define"
)

// destination is a sequence that nothing is done to. Without a limit it is not there.
type destination struct {
	def         define.Definition
	next, limit uint64
	highest     uint64 // that a new one could have
}

func (d *destination) Look(context.Context) (define.Definition, uint64, uint64, error) {
	if d.limit == 0 {
		return define.Definition{}, 0, 0, &define.NameError{Name: "photos", Err: define.ErrUnknown}
	}
	return d.def, d.next, d.limit, nil
}

func (d *destination) LimitOfNew(context.Context, *define.Definition) (uint64, error) {
	return d.highest, nil
}

func (d *destination) Create(context.Context, *define.Definition) (uint64, error) {
	panic("a decision makes a sequence")
}

func (d *destination) Raise(context.Context, uint64) error { panic("a decision raises a sequence") }

func (d *destination) SetComment(context.Context, string) error {
	panic("a decision changes a comment")
}

func TestWhereAnImportedSequenceAndItsTableGoOn(t *testing.T) {
	there := func(next, limit uint64, comment string) destination {
		return destination{def: define.Definition{Name: "photos", Increment: 1, Start: 1, Comment: comment}, next: next, limit: limit}
	}
	for _, c := range []struct {
		what             string
		into             destination
		max, step, first uint64
		ahead            uint64 // where the table goes on above; 0: nothing is done
		done             Imported
		refused          string
	}{
		{"a new sequence has half of what the column has left", destination{highest: 1 << 63}, 1<<32 - 1, 2, 101, 2147483697, Imported{Created: true, Next: 103, Last: 2147483695}, ""},
		{"or so much as nobody uses", destination{highest: 1 << 63}, 1<<63 - 1, 1, 100, 100 + importDistance, Imported{Created: true, Next: 101, Last: 99 + importDistance}, ""},
		{"or as its server gives", destination{highest: 1 << 31}, 1<<63 - 1, 1, 100, 1 << 31, Imported{Created: true, Next: 101, Last: 1<<31 - 1}, ""},
		{"a column that is nearly full has no room for one", destination{highest: 1 << 63}, 2000, 1, 100, 0, Imported{}, "too few numbers are left"},
		{"one that is there goes on above the table", there(50, 1000, ""), 1 << 32, 1, 70, 1001, Imported{Raised: true, Next: 71, Last: 1000}, ""},
		{"or where it was", there(90, 1000, ""), 1 << 32, 1, 70, 1001, Imported{Raised: true, Next: 90, Last: 1000}, ""},
		{"or has none left", there(0, 1000, ""), 1 << 32, 1, 70, 1001, Imported{Raised: true, Next: 0, Last: 1000}, ""},
		{"a table keeps its step above the end", there(50, 1000, ""), 1 << 32, 3, 70, 1003, Imported{Raised: true, Next: 71, Last: 1000}, ""},
		{"a table that was imported before is above the end", there(50, 1000, "imported from flickr.t"), 1 << 32, 1, 1001, 0, Imported{Next: 50, Last: 1000}, ""},
		{"nobody knows what another one gave", there(50, 1000, "imported from flickr.tt"), 1 << 32, 1, 1001, 0, Imported{Next: 50, Last: 1000}, "names no import"},
		{"the column ends too near", there(50, 1000, ""), 1500, 1, 70, 0, Imported{Next: 50, Last: 1000}, "no room above the sequence"},
	} {
		m := importing{Import: Import{Table: "t", From: "flickr.t", Sequence: "photos"}, into: &c.into, max: c.max, step: c.step, first: c.first}
		do, done, err := m.decide(t.Context())
		if do.ahead != c.ahead || done != c.done || do.create != c.done.Created {
			t.Errorf("%s: got %+v and %+v, want the table above %d and %+v", c.what, do, done, c.ahead, c.done)
		}
		if refused := err != nil; refused != (c.refused != "") || refused && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: got %v, want an error with %q", c.what, err, c.refused)
		}
		if do.create && (do.def.Start != c.done.Next || do.def.Max != c.done.Last || do.def.Increment != c.step || do.def.Comment != "imported from flickr.t") {
			t.Errorf("%s: the sequence to make is %+v", c.what, do.def)
		}
	}
}

func TestACommentNamesTheTablesThatWereImported(t *testing.T) {
	for _, before := range []string{"", "keys of photos", "imported from flickr.a", "keys; imported from flickr.a, flickr.b"} {
		comment := withSource(before, "flickr.t")
		if !strings.HasPrefix(comment, before) || !namesSource(comment, "flickr.t") {
			t.Errorf("%q became %q", before, comment)
		}
		if strings.Contains(before, "flickr.a") != namesSource(comment, "flickr.a") {
			t.Errorf("%q: flickr.a is named differently than in %q", comment, before)
		}
		for _, other := range []string{"flickr.tt", "flickr", "t", "keys of photos"} {
			if namesSource(comment, other) {
				t.Errorf("%q is said to name %s", comment, other)
			}
		}
	}
}
