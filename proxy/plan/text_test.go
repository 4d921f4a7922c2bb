package plan

import (
	"strings"
	"testing"

	"seqproxy/proxy/state"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// world answers a test's Needs.
type world struct {
	sequences string // names of existing sequences, separated by blanks
	usable    string // those that the user may use
	same      bool   // names are spellings of one
	digits    bool
	ofTexts   string            // sequences whose keys are texts
	texts     map[string]string // names in UTF-8
}

func (w *world) answer(f *Facts, n *Need) {
	has := func(list string) Answer {
		return AnswerOf(len(n.Name) > 0 && strings.Contains(" "+list+" ", " "+string(n.Name)+" "))
	}
	switch n.What {
	case NeedText:
		text, ok := w.texts[string(n.Name)]
		f.SetText(n.Name, []byte(text), AnswerOf(ok))
	case NeedWhole:
		f.NameOf(n.At).Whole = has(w.sequences)
	case NeedExists:
		f.NameOf(n.At).Exists = has(w.sequences)
	case NeedRight:
		f.NameOf(n.At).Usable = has(w.usable)
	case NeedTexts:
		f.NameOf(n.At).Texts = has(w.ofTexts)
	case NeedSame:
		f.NameOf(n.At).SameAsFirst = AnswerOf(w.same)
	case NeedDigits:
		f.Digits = AnswerOf(w.digits)
	}
}

// decide plans a text, and answers the plan's Needs; rounds is how many there were.
func (w *world) decide(p *Planner, text string, s *state.State) (v Verdict, rounds int) {
	var st statement.Statement
	st.Analyze([]byte(text), lex.Mode{Charset: lex.UTF8})
	for ; rounds <= Rounds; rounds++ {
		v = p.Text(&st, []byte(text), s)
		if v.Kind != Asks {
			return v, rounds
		}
		for i := range v.Needs {
			w.answer(&p.Facts, &v.Needs[i])
		}
	}
	return v, rounds
}

// all are Facts of an ordinary session.
func all(f Facts) Facts {
	f.Charset, f.Schema, f.Server, f.Attached = "utf8mb4", "seq", true, true
	return f
}

func TestATextIsPlanned(t *testing.T) {
	const perRow, counted = "for each row", "by the server"
	relay, limited := Facts{Unknown: UnknownRelay}, Facts{Limited: true}
	nobody, inUTF16 := state.State{}, state.State{Sysvars: map[string]int{"character_set_results": 1}}
	holder := state.State{LastID: state.LastInsertID{Holder: 7}}
	limitedRows := state.State{SelectLimit: true}
	for _, c := range []struct {
		name   string
		text   string
		facts  Facts
		st     state.State
		world  world
		do     Do
		how    string // how numbers are taken, if not once
		names  string // sequences whose numbers are taken
		rounds int
		why    Why
		says   string
	}{
		{name: "a number alone", text: "SELECT NEXTVAL('a')", st: nobody, do: Reply, names: "a"},
		{name: "beside the client's rows", text: "SELECT NEXTVAL('a'), b", do: Rewrite, names: "a"},
		{name: "two", text: "INSERT INTO t VALUES (NEXTVAL('a'), NEXTVAL('b'))", do: Rewrite, names: "a b"},
		{name: "an id that a server knows", text: "SELECT NEXTVAL('a'), LAST_INSERT_ID()", st: holder, do: Rewrite, names: "a"},
		{name: "an id that is known", text: "SELECT NEXTVAL('a'), LAST_INSERT_ID()", do: Reply, names: "a"},
		{name: "rows are limited", text: "SELECT NEXTVAL('a')", st: limitedRows, do: Rewrite, names: "a"},
		{name: "rows are limited at each execution", text: "SELECT NEXTVAL('a')", facts: Facts{At: AtExecute}, st: limitedRows, do: Reply, names: "a"},
		{name: "the server warns", text: "SELECT NEXTVAL('a')", facts: Facts{Warns: true}, do: Rewrite, names: "a"},
		{name: "no name of ours", text: "SELECT NEXTVAL('a')", facts: relay, do: Relay, rounds: 1},
		{name: "a name of ours", text: "SELECT NEXTVAL('a')", facts: relay, world: world{sequences: "a"}, do: Reply, names: "a", rounds: 1},
		{name: "a schema in front", text: "SELECT NEXTVAL(x.a)", world: world{sequences: "x.a"}, do: Reply, names: "x.a", rounds: 1},
		{name: "an unknown one in front", text: "SELECT NEXTVAL(x.a)", why: UnknownSequence, says: "x.a", rounds: 1},
		{name: "that of the sequence table", text: "SELECT NEXTVAL(seq.a)", do: Reply, names: "a"},
		{name: "MyCat's prefix", text: "SELECT NEXT VALUE FOR MYCATSEQ_a", do: Reply, names: "a", rounds: 1},
		{name: "a name with it", text: "SELECT NEXT VALUE FOR MYCATSEQ_a", world: world{sequences: "MYCATSEQ_a"}, do: Reply, names: "MYCATSEQ_a", rounds: 1},
		{name: "the prefix, where others are the server's", text: "SELECT NEXT VALUE FOR MYCATSEQ_a", facts: relay, world: world{sequences: "a"}, do: Reply, names: "a", rounds: 2},
		{name: "a right", text: "SELECT NEXTVAL('a')", facts: limited, world: world{usable: "a"}, do: Reply, names: "a", rounds: 1},
		{name: "no right", text: "SELECT NEXTVAL('a')", facts: limited, why: NoRight, says: "a", rounds: 1},
		{name: "no right to the second", text: "SELECT NEXTVAL('a'), NEXTVAL('b')", facts: limited, world: world{usable: "a"}, why: NoRight, says: "b", rounds: 1},
		{name: "an admin's", text: "SELECT SETVAL('a', 5)", why: NotAdmin},
		{name: "by an admin", text: "SELECT SETVAL('a', 5)", facts: Facts{Admin: true}, do: Reply, names: "a"},
		{name: "among others", text: "INSERT INTO t VALUES (SETVAL('a', 5))", facts: Facts{Admin: true}, why: NotSupported, says: "SETVAL in a larger statement"},
		{name: "a parameter in a text", text: "SELECT NEXTVAL(?)", why: NotSupported, says: "a parameter (?)"},
		{name: "a parameter", text: "SELECT NEXTVAL(?)", facts: Facts{At: AtPrepare}, do: Reply},
		{name: "unknown when it is prepared", text: "INSERT INTO t VALUES (NEXTVAL('a'))", facts: Facts{At: AtPrepare}, why: UnknownSequence, says: "a", rounds: 1},
		{name: "created when it is executed", text: "INSERT INTO t VALUES (NEXTVAL('a'))", facts: Facts{At: AtPrepare, Unknown: UnknownCreate}, do: Rewrite, names: "a", rounds: 1},
		{name: "unknown, but for EXPLAIN", text: "SELECT NEXTVAL('a')", facts: Facts{At: Explained}, why: UnknownSequence, says: "a", rounds: 1},
		{name: "for each row", text: "SELECT NEXTVAL('a'), b FROM t", world: world{sequences: "a"}, do: Rewrite, how: perRow, names: "a", rounds: 1},
		{name: "for each row, in ASCII", text: "SELECT NEXTVAL('a') FROM t", st: inUTF16, world: world{sequences: "a", digits: true}, do: Rewrite, how: perRow, names: "a", rounds: 2},
		{name: "for each row, in UTF-16", text: "SELECT NEXTVAL('a') FROM t", st: inUTF16, world: world{sequences: "a"}, why: NotSupported, says: "character_set_results", rounds: 2},
		{name: "for each row, beside LASTVAL", text: "SELECT NEXTVAL('a'), LASTVAL('a') FROM t", why: NotSupported, says: "LASTVAL beside"},
		{name: "counted", text: "INSERT INTO t SELECT NEXTVAL('a'), b FROM u", world: world{sequences: "a"}, do: Rewrite, how: counted, names: "a", rounds: 2},
		{name: "texts for each row", text: "SELECT NEXTVAL('a'), b FROM t", world: world{sequences: "a", ofTexts: "a"}, why: NotSupported, says: "whose keys are texts", rounds: 1},
		{name: "texts, counted", text: "INSERT INTO t SELECT NEXTVAL('a'), b FROM u", world: world{sequences: "a", ofTexts: "a"}, why: NotSupported, says: "whose keys are texts", rounds: 1},
		{name: "a text", text: "INSERT INTO t VALUES (NEXTVAL('a'))", world: world{sequences: "a", ofTexts: "a"}, do: Rewrite, names: "a"},
		{name: "counted, of two", text: "INSERT INTO t SELECT NEXTVAL('a'), NEXTVAL('b') FROM u", why: NotSupported, says: "two sequences", rounds: 1},
		{name: "counted, of two spellings", text: "INSERT INTO t SELECT NEXTVAL('a'), NEXTVAL('A') FROM u", world: world{sequences: "a A", same: true}, do: Rewrite, how: counted, names: "a A", rounds: 2},
		{name: "a form of no number", text: "SELECT DISTINCT NEXTVAL('a') FROM t", why: NotSupported, says: "NEXTVAL in"},
		{name: "such a form of no name of ours", text: "SELECT DISTINCT NEXTVAL('a') FROM t", facts: relay, do: Relay, rounds: 1},
		{name: "the client's id", text: "SELECT CONNECTION_ID()", do: Reply},
		{name: "its own variable", text: "SELECT @@pseudo_thread_id", do: Rewrite},
		{name: "a number behind another statement's", text: "SELECT 1; INSERT INTO t VALUES (NEXTVAL('a'), LAST_INSERT_ID())", do: Rewrite, names: "a"},
		{name: "the same in no order", text: "SELECT 1; SELECT NEXTVAL('a') + LAST_INSERT_ID()", why: NotSupported, says: "stands behind another"},
		{name: "inside another text", text: "SELECT NEXTVAL('a') FROM t", facts: Facts{At: Inside}, do: Relay, names: "a"},
	} {
		p, before := Planner{Facts: all(c.facts)}, c.st.LastID
		v, rounds := c.world.decide(&p, c.text, &c.st)
		if c.why != Granted {
			text := v.Refusal.Text + string(v.Refusal.Name)
			if v.Kind != Refuse || v.Refusal.Why != c.why || !strings.Contains(text, c.says) || rounds != c.rounds {
				t.Errorf("%s: got %d, why %d, %q after %d rounds, want why %d, %q after %d", c.name, v.Kind, v.Refusal.Why, text, rounds, c.why, c.says, c.rounds)
			}
			continue
		}
		var names []string
		for i := range p.Action.Slots {
			if slot := &p.Action.Slots[i]; slot.Served() && slot.Sequence != nil {
				names = append(names, string(slot.Sequence))
			}
		}
		if got := strings.Join(names, " "); v.Kind != Go || p.Action.Do != c.do || got != c.names || rounds != c.rounds {
			t.Errorf("%s: got %d %+v, %d, of %q after %d rounds, want %d, of %q after %d", c.name, v.Kind, v.Refusal, p.Action.Do, got, rounds, c.do, c.names, c.rounds)
		}
		how := ""
		if p.Action.Rows != nil {
			how += perRow
		}
		if p.Action.Counts != nil {
			how += counted
		}
		if how != c.how {
			t.Errorf("%s: numbers are taken %s, want %s", c.name, how, c.how)
		}
		if c.st.LastID != before {
			t.Errorf("%s: the state has changed", c.name)
		}
	}
}

func TestNamesOfOtherCharacterSetsAreAskedFor(t *testing.T) {
	w := world{sequences: "ä.ö", texts: map[string]string{"\xe4": "ä", "\xf6": "ö"}}
	for charset, want := range map[string]struct {
		kind   Kind
		rounds int
	}{"latin1": {Go, 1}, "latin2": {Go, 2}, "utf8mb4": {Refuse, 0}, "": {Refuse, 0}} {
		p := Planner{Facts: all(Facts{})}
		p.Facts.Charset = charset
		v, rounds := w.decide(&p, "SELECT NEXTVAL(`\xe4`.`\xf6`)", &state.State{})
		if v.Kind != want.kind || rounds != want.rounds {
			t.Errorf("%s: got %d %+v after %d rounds, want %+v", charset, v.Kind, v.Refusal, rounds, want)
		}
	}
}

func TestWhatParametersTellIsInTheSlots(t *testing.T) {
	for _, c := range []struct {
		name    string
		unknown Unknown
		given   Slot
		want    Do
		rounds  int
	}{
		{"a name", UnknownError, Slot{Func: statement.Nextval, Sequence: []byte("b"), Count: 1}, Reply, 0},
		{"a name, where others are the server's", UnknownRelay, Slot{Func: statement.Nextval, Sequence: []byte("b"), Count: 1}, Reply, 1},
		{"no name of ours", UnknownRelay, Slot{Func: statement.Nextval, Sequence: []byte("x"), Count: 1}, Relay, 1},
	} {
		p := Planner{Facts: all(Facts{At: AtExecute, Unknown: c.unknown})}
		of := p.Facts.NameOf(0)
		of.Given, of.Named = c.given, true
		w := world{sequences: "a b"}
		v, rounds := w.decide(&p, "SELECT NEXTVAL(?)", &state.State{})
		slot := &p.Action.Slots[0]
		if v.Kind != Go || p.Action.Do != c.want || rounds != c.rounds || string(slot.Sequence) != string(c.given.Sequence) || slot.Count != 1 {
			t.Errorf("%s: got %+v, %d, %+v after %d rounds", c.name, v, p.Action.Do, slot, rounds)
		}
	}
}

// A key that is filled in changes LAST_INSERT_ID() for the other reads in the text, whether the
// proxy or the server answers them.
func TestAKeyThatIsFilledInDisturbsBesideACallOfTheServers(t *testing.T) {
	p := Planner{Facts: all(Facts{Unknown: UnknownRelay})}
	p.Facts.Fill = &Filling{Keys: []FilledKey{{Binding: &Binding{}, Filled: []FilledRow{{Row: 0}}}}}
	w := world{}
	v, _ := w.decide(&p, "INSERT INTO photos (a, b) VALUES ((SELECT DISTINCT NEXTVAL('x') FROM t), LAST_INSERT_ID())", &state.State{})
	if v.Kind != Go || p.Action.Do != Rewrite || !p.Action.Previous || p.Action.Fill == nil {
		t.Errorf("got %+v, %+v", v, p.Action)
	}
}

// The plan of a prepared text knows which keys are texts: their parameters are of another type, and
// LAST_INSERT_ID() is the first number after them.
func TestTextsArePrepared(t *testing.T) {
	p, w := Planner{Facts: all(Facts{At: AtPrepare})}, world{sequences: "a b", ofTexts: "a"}
	const text = "INSERT INTO t VALUES (NEXTVAL('a'), NEXTVAL('b'), NEXTVAL('b'))"
	s := &state.State{}
	v, _ := w.decide(&p, text, s)
	var st statement.Statement
	st.Analyze([]byte(text), lex.Mode{Charset: lex.UTF8})
	subs := p.Action.Substitutions(&st, s, 1, 0)
	if v.Kind != Go || !p.Action.Slots[0].Texts || p.Action.Slots[1].Texts || subs[0].Replacement != statement.AsText ||
		subs[1].Replacement != statement.AsLastInsertID || subs[2].Replacement != statement.AsUnsigned {
		t.Errorf("got %+v, %+v, %+v", v, p.Action.Slots, subs)
	}
}

func TestTheFirstRowsNumberLeads(t *testing.T) {
	for text, want := range map[string]int{
		"SELECT NEXTVAL('a') FROM t":                               -1,
		"INSERT INTO t (b) SELECT c FROM u RETURNING NEXTVAL('a')": 0,
		"INSERT INTO t VALUES (NEXTVAL('a'))":                      -1,
	} {
		p, w := Planner{Facts: all(Facts{MariaDB: true})}, world{sequences: "a"}
		v, _ := w.decide(&p, text, &state.State{})
		lead := -1
		if p.Action.Rows != nil {
			lead = p.Action.Rows.Lead
		}
		if v.Kind != Go || lead != want || len(p.Action.Slots) != 1 {
			t.Errorf("%s: got %+v, lead %d, want %d", text, v, lead, want)
		}
	}
}

func TestAPlanTakesNoMemory(t *testing.T) {
	const text = "INSERT INTO t VALUES (NEXTVAL('a'), NEXTVAL('b'))"
	var st statement.Statement
	st.Analyze([]byte(text), lex.Mode{Charset: lex.UTF8})
	p, s, sql := Planner{Facts: all(Facts{})}, state.State{}, []byte(text)
	if n := testing.AllocsPerRun(100, func() {
		if v := p.Text(&st, sql, &s); v.Kind != Go || len(p.Action.Substitutions(&st, &s, 1, 0)) != 2 {
			t.Error("the text is not planned")
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func TestWhatALargeTextHasLeftIsGivenUp(t *testing.T) {
	p := Planner{Facts: all(Facts{})}
	w := world{}
	w.decide(&p, "SELECT NEXTVAL('a')", &state.State{})
	if !p.Trim() || len(p.Action.Slots) != 0 || p.Action.Slots[:1][0].Sequence != nil {
		t.Errorf("got %+v of a small text", p.Action.Slots)
	}
	w.decide(&p, "SELECT NEXTVAL('a')"+strings.Repeat(", NEXTVAL('a')", 100), &state.State{})
	if p.Trim() {
		t.Error("Trim after a large text: got true, want false")
	}
}
