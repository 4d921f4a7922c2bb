package session

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/sequence/define"
)

// lateOwners are not known before somebody waits for them, nor then if there is an error.
type lateOwners struct {
	known *sequence.Owners
	err   error
	waits int
}

func (l *lateOwners) Owners() *sequence.Owners { return l.known }

func (l *lateOwners) LoadOwners(context.Context) (*sequence.Owners, error) {
	l.waits++
	if l.err == nil {
		l.known = &sequence.Owners{List: []sequence.Owner{{Sequence: "photos", Column: define.Column{Table: "photos", Column: "id"}}}}
	}
	return l.known, l.err
}

// asksFirst are the questions about bound columns. Each is the first that a proxy asks.
var asksFirst = map[string]func(p *planning) (bound bool, err error){
	"a column of the shard": func(p *planning) (bool, error) { return p.boundHere() },
	"a table": func(p *planning) (bool, error) {
		p.stmt.Analyze([]byte("INSERT INTO photos VALUES (DEFAULT)"), p.state.Mode)
		return p.boundTables()
	},
	"a text that is not read to its end": func(p *planning) (bool, error) {
		sql := []byte("SELECT 1; INSERT INTO photos VALUES ('1)")
		p.stmt.Analyze(sql, p.state.Mode)
		return p.mayHideInsert(sql)
	},
	"what is done with a text": func(p *planning) (bool, error) {
		sql := []byte("INSERT INTO photos VALUES (DEFAULT)")
		p.stmt.Analyze(sql, p.state.Mode)
		how, err := p.treatmentOf(sql)
		return err == nil && how == fills, err
	},
	"a text that is prepared": func(p *planning) (bool, error) {
		p.stmt.Analyze([]byte("INSERT INTO photos VALUES (DEFAULT)"), p.state.Mode)
		in, err := p.insertsOf()
		return in.bound != nil, err
	},
	"a text that was prepared when nothing was bound": func(p *planning) (bool, error) {
		err := p.stillBound(&insertsInto{names: [][]byte{[]byte("photos")}})
		if errors.Is(err, errRebound) {
			return true, nil
		}
		return false, err
	},
}

func planningWith(t *testing.T, owners columnOwners, shards ...string) *planning {
	t.Helper()
	opts := backend.Options{Default: shards[0], Logger: zap.NewNop()}
	for _, name := range shards {
		opts.Shards = append(opts.Shards, backend.ShardOptions{Name: name, Nodes: []string{"127.0.0.1:1"}})
	}
	all, err := backend.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	at := &attachment{set: &Settings{owners: owners}, routes: all.Routes()}
	at.shared = &Shared{Log: zap.NewNop()}
	at.shared.Settings.Store(at.set)
	at.state = &state.State{}
	p := &planning{facts: facts{&ground{at: at, state: at.state, numbers: new(keys.Taker)}}}
	p.numbers.For(t.Context(), &p.facts, new(stats.Tally))
	return p
}

func TestWhoAsksFirstWhatIsBoundWaitsForTheOwners(t *testing.T) {
	for name, asks := range asksFirst {
		for _, shards := range [][]string{{"one"}, {"one", "other"}} {
			owners := &lateOwners{}
			p := planningWith(t, owners, shards...)
			for range 2 {
				if bound, err := asks(p); !bound || err != nil || owners.waits != 1 {
					t.Errorf("%s, shards %v: bound %v, %v, waited %d times, want bound and one wait", name, shards, bound, err, owners.waits)
				}
			}
		}
	}
}

func TestWithoutTheOwnersNothingCountsAsUnboundWhereThereAreSeveralShards(t *testing.T) {
	for name, asks := range asksFirst {
		owners := &lateOwners{err: errors.New("down")}
		p := planningWith(t, owners, "one", "other")
		for range 2 {
			if bound, err := asks(p); bound || err == nil || !strings.Contains(err.Error(), "is not known yet") || owners.waits != 1 {
				t.Errorf("%s: bound %v, %v, waited %d times, want an error after one wait", name, bound, err, owners.waits)
			}
		}
		owners.known, owners.err = &sequence.Owners{}, nil
		if bound, err := asks(p); bound || err != nil {
			t.Errorf("%s: bound %v, %v once it is known that no column owns a sequence", name, bound, err)
		}
	}
}

// unreadable has names that cannot be converted, as the sequence server is away.
type unreadable struct{ sequenceNames }

func (unreadable) InUTF8(context.Context, string, []byte) ([]byte, error) {
	return nil, errors.New("down")
}

func TestAStatementWhoseTableCannotBeReadIsPreparedAgainWhenAnythingIsBound(t *testing.T) {
	for _, charset := range []string{"gbk", ""} {
		owners := &lateOwners{known: &sequence.Owners{}}
		p := planningWith(t, owners, "one", "other")
		p.at.set.names, p.state.Charset = unreadable{}, charset
		p.stmt.Analyze([]byte("INSERT INTO `\xd5\xd5\xc6\xac` VALUES (1)"), p.state.Mode)
		in, err := p.insertsOf()
		if err != nil || in.none() {
			t.Fatalf("%q: got %+v, %v, want a table", charset, in, err)
		}
		if err := p.stillBound(&in); err != nil {
			t.Errorf("%q: got %v before anything has changed", charset, err)
		}
		owners.known = &sequence.Owners{List: []sequence.Owner{{Sequence: "s", Column: define.Column{Table: "照片", Column: "id"}}}}
		if err := p.stillBound(&in); !errors.Is(err, errRebound) {
			t.Errorf("%q: got %v once a column is bound, want that it is to be prepared again", charset, err)
		}
	}
}

func TestATextThatIsNotReadToItsEndIsPreparedAgainWhenAnythingIsBound(t *testing.T) {
	owners := &lateOwners{known: &sequence.Owners{}}
	p := planningWith(t, owners, "one")
	p.stmt.Analyze([]byte("SELECT 1; INSERT INTO photos VALUES ('1)"), p.state.Mode)
	in, err := p.insertsOf()
	if err != nil || in.none() {
		t.Fatalf("got %+v, %v, want tables that are not known", in, err)
	}
	owners.known = &sequence.Owners{Generation: 1}
	if err := p.stillBound(&in); err != nil {
		t.Errorf("got %v, though nothing is bound as before", err)
	}
	owners.known = &sequence.Owners{List: []sequence.Owner{{Sequence: "albums", Column: define.Column{Table: "albums", Column: "id"}}}}
	if err := p.stillBound(&in); !errors.Is(err, errRebound) {
		t.Errorf("got %v once a column is bound, want that it is to be prepared again", err)
	}
}

func TestTheTablesOfAllTextsThatArePreparedAreRemembered(t *testing.T) {
	all := make(preparedTexts)
	for i := range maxPrepared {
		all[strconv.Itoa(i)] = preparedText{}
	}
	if err := all.full("0"); err != nil {
		t.Errorf("a name that is used again: %v", err)
	}
	var refused *protocol.ServerError
	if err := all.full("further"); !errors.As(err, &refused) || refused.Code != mysql.ER_MAX_PREPARED_STMT_COUNT_REACHED {
		t.Errorf("a further name: got %v, want 1461", err)
	}
	if err := (preparedTexts{}).full(strings.Repeat("x", maxPreparedName)); err != nil {
		t.Errorf("a name of %d bytes: %v", maxPreparedName, err)
	}
	if err := (preparedTexts{}).full(strings.Repeat("x", maxPreparedName+1)); err == nil {
		t.Error("a longer name is remembered")
	}
}

func TestWhatIsBoundOnAnotherShardDoesNotConcernWhatWasPreparedUnseen(t *testing.T) {
	const here, there = "here", "there"
	all, err := backend.New(backend.Options{Default: "one", Logger: zap.NewNop(), Shards: []backend.ShardOptions{
		{Name: "one", Nodes: []string{"127.0.0.1:1"}, Schemas: []string{here}},
		{Name: "other", Nodes: []string{"127.0.0.1:2"}, Schemas: []string{there}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	owners := &lateOwners{known: &sequence.Owners{}}
	p := planningWith(t, owners, "one")
	p.at.routes, p.state.Schema = all.Routes(), here
	p.relay = new(relay)
	s := &texts{ground: p.ground, planning: p, named: preparedTexts{"known": {}}}
	if err := s.preparesUnseen(); err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{there, here} {
		owners.known = &sequence.Owners{List: []sequence.Owner{{Sequence: "s", Column: define.Column{Schema: schema, Table: "photos", Column: "id"}}}}
		for what, err := range map[string]error{"known": s.mayExecuteText("known"), "another": s.mayExecuteText("another"), "any": s.mayExecuteAny()} {
			if errors.Is(err, errRebound) != (schema == here) {
				t.Errorf("bound in schema %s, %s statement: got %v", schema, what, err)
			}
		}
	}
}

func TestBoundColumnsAreNotAllLookedAtWithoutTheOwners(t *testing.T) {
	down := errors.New("down")
	p := planningWith(t, &lateOwners{err: down}, "one", "other")
	p.at.set.Routes = p.at.routes
	if all, err := p.at.set.Numbered(t.Context(), nil); !errors.Is(err, down) || len(all) != 0 {
		t.Errorf("got %v, %v, want an error that says that the columns are not known", all, err)
	}
}

func TestWithOneShardTheConfigurationCountsWithoutTheOwners(t *testing.T) {
	for name, asks := range asksFirst {
		for _, configured := range [][]Binding{nil, {{Table: "photos", Column: "id", Sequence: "photos"}}} {
			p := planningWith(t, &lateOwners{err: errors.New("down")}, "one")
			p.at.set.configured = configured
			if bound, err := asks(p); bound != (configured != nil) || err != nil {
				t.Errorf("%s, configured %v: bound %v, %v", name, configured, bound, err)
			}
		}
	}
}

// The configuration counts for a table that an owner names, too.
func TestTheConfigurationCountsBeforeOwners(t *testing.T) {
	owner := func(schema string) *sequence.Owners {
		return &sequence.Owners{List: []sequence.Owner{{Sequence: "owned", Column: define.Column{Schema: schema, Table: "photos", Column: "id"}}}}
	}
	for _, test := range []struct{ configured, owned, inAlbum0, inAlbum1 string }{
		{"", "", "configured", "configured"},
		{"", "album0", "configured", "configured"},
		{"album0", "", "configured", "owned"},
		{"album0", "album0", "configured", ""},
		{"album0", "album1", "configured", "owned"},
	} {
		b := newBindings([]Binding{{Schema: test.configured, Table: "photos", Column: "id", Sequence: "configured"}}, owner(test.owned))
		for schema, want := range map[string]string{"album0": test.inAlbum0, "album1": test.inAlbum1} {
			got := ""
			if is := plan.BindingOf(b.all().Named([]byte("photos")), schema, "photos", false); is != nil {
				got = is.Sequence
			}
			if is := plan.BindingOf(b.all().Named([]byte("PHOTOS")), schema, "PHOTOS", true); (is == nil) != (want == "") || is != nil && is.Sequence != want {
				t.Errorf("%+v, where letter case does not matter: got %+v in %s, want %q", test, is, schema, want)
			}
			if got != want {
				t.Errorf("%+v: got %q in %s, want %q", test, got, schema, want)
			}
		}
	}
}
