package admin

import (
	"context"
	"testing"
	"time"

	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// lister is an engine with a list.
type lister struct {
	engine
	all []sequence.Info
}

func (l lister) List(context.Context) ([]sequence.Info, error) { return l.all, nil }

// lookedAt is a session of a user of photos, which counts what it is asked for.
type lookedAt struct {
	unaudited
	shards, rights int
}

func (l *lookedAt) Numbered(context.Context) ([]proxy.Numbered, error) {
	l.shards++
	return nil, nil
}

func (l *lookedAt) Usable(context.Context, []string) (map[string]bool, error) {
	l.rights++
	return map[string]bool{"photos": true}, nil
}

// Thousands of sequences may be in a list that anybody may ask for.
func TestAListAsksShardsForThoseWhoManageAndRightsOnceForOthers(t *testing.T) {
	all := lister{all: []sequence.Info{{Name: "albums"}, {Name: "photos"}, {Name: "videos"}}}
	for _, test := range []struct {
		monitor              bool
		shards, rights, rows int
	}{{true, 1, 0, 3}, {false, 0, 1, 1}} {
		var st statement.Statement
		st.Analyze([]byte("SHOW SEQUENCES"), lex.Mode{})
		by := new(lookedAt)
		table, err := NewSequences(all, nil).Execute(t.Context(), &st, proxy.Caller{Monitor: test.monitor, CallerSession: by})
		if err != nil {
			t.Fatal(err)
		}
		if by.shards != test.shards || by.rights != test.rights || len(table.Rows) != test.rows {
			t.Errorf("monitor %v: asked shards %d times, and for rights %d times, of %d rows; want %+v", test.monitor, by.shards, by.rights, len(table.Rows), test)
		}
	}
}

func TestTheEndIsToldForPeople(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]any{
		sequence.Never:    nil,
		0:                 "now",
		time.Second:       "in 1 minutes at today's rate",
		119 * time.Minute: "in 119 minutes at today's rate",
		2 * time.Hour:     "in 2 hours at today's rate",
		47 * time.Hour:    "in 47 hours at today's rate",
		210 * day:         "in 210 days at today's rate",
		700 * day:         "in 700 days at today's rate",
		800 * day:         "in 2 years at today's rate",
		36500 * day:       "in 100 years at today's rate",
	} {
		if got := end(d); got != want {
			t.Errorf("%v: got %v, want %v", d, got, want)
		}
	}
}
