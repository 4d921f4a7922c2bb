package statement

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"seqproxy/statement/idiom"
	"seqproxy/statement/lex"
	"seqproxy/test/texts"
)

// FuzzAnalyze checks for any text: Analyze and Rewrite do not panic. Offsets are in order and in
// range. A rewrite that keeps all calls returns the text, and one that replaces calls changes
// nothing else. A reused Statement finds the same as a fresh one.
func FuzzAnalyze(f *testing.F) {
	for _, sql := range texts.Corpus {
		f.Add([]byte(sql), byte(0))
		f.Add([]byte(sql), byte(2))
		f.Add([]byte(sql), byte(lex.GBK)<<2)
	}
	var used Statement
	f.Fuzz(func(t *testing.T, sql []byte, m byte) {
		mode := texts.ModeOf(m)
		before := bytes.Clone(sql)
		var st Statement
		st.Analyze(sql, mode)
		used.Analyze(sql, mode)
		if !bytes.Equal(sql, before) {
			t.Fatalf("Analyze changed the text %q to %q", before, sql)
		}
		checkOffsets(t, sql, &st)
		if a, b := outcome(&st), outcome(&used); !reflect.DeepEqual(a, b) {
			t.Errorf("a reused statement differs:\nfresh %+v\nused  %+v", a, b)
		}

		keep := make([]Substitution, len(st.Calls))
		if got := st.Rewrite(nil, sql, keep); !bytes.Equal(got, sql) {
			t.Errorf("keeping everything: got %q, want %q", got, sql)
		}
		if st.Refusal == "" {
			checkRewrite(t, sql, &st)
		}
		if st.Plain() && (len(st.Calls) > 0 || st.Kind == Other || st.Kind == Multi || st.Kind == Set) {
			t.Errorf("plain, but %s with %d calls", kindNames[st.Kind], len(st.Calls))
		}
		idiom.SimpleSelect(sql, mode)
		SchemasNamed(sql, mode)
	})
}

// outcome is the visible part of a Statement, without its memory.
func outcome(st *Statement) Statement {
	out := *st
	out.levels, out.arena, out.sequence = nil, nil, nil
	if st.Sequence != nil {
		copied := *st.Sequence
		copied.Names, copied.Schemas = append([][]byte{}, copied.Names...), append([]int{}, copied.Schemas...)
		out.Sequence = &copied
	}
	out.Calls, out.Items, out.Assignments = append([]FuncCall{}, st.Calls...), append([]Item{}, st.Items...), append([]Assignment{}, st.Assignments...)
	for i := range out.Calls {
		out.Calls[i].Name = append([]byte{}, out.Calls[i].Name...)
		out.Calls[i].Schema = append([]byte{}, out.Calls[i].Schema...)
	}
	for i := range out.Items {
		out.Items[i].Alias = append([]byte{}, out.Items[i].Alias...)
	}
	for i := range out.Assignments {
		out.Assignments[i].Name = append([]byte{}, out.Assignments[i].Name...)
	}
	out.Schema = append([]byte{}, st.Schema...)
	out.Kills = append([]KillTarget{}, st.Kills...)
	out.Parts = append([]Part{}, st.Parts...)
	for i := range out.Parts {
		out.Parts[i].Schema = append([]byte{}, out.Parts[i].Schema...)
	}
	out.Tables = append([]TableRef{}, st.Tables...)
	for i := range out.Tables {
		out.Tables[i].Schema, out.Tables[i].Name = append([]byte{}, out.Tables[i].Schema...), append([]byte{}, out.Tables[i].Name...)
	}
	return out
}

func checkOffsets(t *testing.T, sql []byte, st *Statement) {
	t.Helper()
	end, params := 0, 0
	for i, c := range st.Calls {
		if c.Start < end || c.End <= c.Start || c.End > len(sql) {
			t.Fatalf("call %d is at [%d,%d) after %d of %d", i, c.Start, c.End, end, len(sql))
		}
		if c.ParamsBefore < params || c.ParamsBefore > st.Params {
			t.Fatalf("call %d has %d parameters before it, after %d of %d", i, c.ParamsBefore, params, st.Params)
		}
		if c.Item >= len(st.Items) || c.Item >= 0 && (i < st.Items[c.Item].FirstCall || i >= st.Items[c.Item].EndCall) {
			t.Fatalf("call %d is not in its item %d", i, c.Item)
		}
		if c.Func == Nextval && st.Refusal == "" && c.Form != FormName && c.Form != FormQualified && c.Form != FormParam {
			t.Fatalf("call %d of form %d is not refused", i, c.Form)
		}
		if n := bytes.Count(sql[c.Start:c.End], []byte("?")); c.Markers() > n || c.Func == Nextval && (c.Count > MaxCount || c.Count == 0 && n == 0) {
			t.Fatalf("call %d has %d markers and takes %d numbers", i, c.Markers(), c.Count)
		}
		end, params = c.End, c.ParamsBefore+c.Markers()
	}
	checkDotted(t, sql, st)
	end = 0
	for i, it := range st.Items {
		if it.Start >= it.End || it.End < end || it.End > len(sql) || it.FirstCall >= it.EndCall || it.EndCall > len(st.Calls) {
			t.Fatalf("item %d is %+v after %d of %d", i, it, end, len(sql))
		}
		end = it.End
	}
	for i, as := range st.Assignments {
		if as.Start > as.End || as.Start < 0 || as.End > len(sql) {
			t.Fatalf("assignment %d is %+v of %d", i, as, len(sql))
		}
	}
	if st.Kind == Other && st.SelfContained || st.Kind == Empty && len(st.Calls) > 0 {
		t.Fatalf("%s with calls %v", kindNames[st.Kind], st.Calls)
	}
}

// checkDotted checks that, if s.NEXTVAL counts as a sequence's, every other s of the text is in a
// string or comment, the name of a sequence in another call, or a different word.
func checkDotted(t *testing.T, sql []byte, st *Statement) {
	isCall := func(l *lex.Lexer) bool {
		word := l.Src[l.Start:l.End]
		return lex.EqualFold(word, "nextval") || lex.EqualFold(word, "currval")
	}
	t.Helper()
	for _, c := range st.Calls {
		if c.Spelling != AsColumn || !lex.ASCII(c.Name) || len(c.Name) == 0 {
			continue
		}
		var before [3]lex.Lexer // the last three tokens
		for l := (lex.Lexer{Src: sql, Mode: st.mode}); ; {
			before[2], before[1], before[0] = before[1], before[0], l
			if l.Next(); l.Kind == lex.EOF {
				break
			}
			if l.Kind != lex.Word && l.Kind != lex.Quoted || !bytes.EqualFold(new(lex.Arena).Decode(&l), c.Name) {
				continue
			}
			after := l
			if after.Next(); after.Is('.') {
				if after.Next(); isCall(&after) && after.Kind == lex.Word {
					continue
				}
			}
			if isCall(&l) && before[0].Is('.') { // part of a sequence's name
				continue
			}
			function := before[0].Is('(') || before[0].Is('.') && before[2].Is('(') || before[0].Kw == lex.KwFor || before[0].Is('.') && before[2].Kw == lex.KwFor
			if !function {
				t.Fatalf("%q: %q is taken for a sequence, and is at %d, too", sql, c.Name, l.Start)
			}
		}
	}
}

// checkRewrite replaces all calls and then removes the replacements again.
func checkRewrite(t *testing.T, sql []byte, st *Statement) {
	t.Helper()
	needs := st.Needs(nil, bytes.Equal)
	values := Replacements{LastInsertID: 77, ConnectionID: 1 << 31, Params: true}
	total := 0
	for _, n := range needs {
		values.Taken = append(values.Taken, Taken{First: 1000})
		total += n.Count
	}
	subs := st.Substitutions(nil, needs, bytes.Equal, values)
	if len(subs) != len(st.Calls) {
		t.Fatalf("got %d substitutions for %d calls", len(subs), len(st.Calls))
	}
	got := st.Rewrite(nil, sql, subs)

	// Every byte outside of replaced calls must be there, in order. Only replacements and aliases
	// may stand between.
	rest := got
	from := 0
	firsts, nextvals := 0, 0
	for i, c := range st.Calls {
		if st.Calls[i].Func == Nextval {
			nextvals++
		}
		if subs[i].Replacement == AsLastInsertID {
			firsts++
		}
		if subs[i].Replacement == Keep {
			continue
		}
		var ok bool
		if rest, ok = through(rest, sql[from:c.Start]); !ok {
			t.Fatalf("%q -> %q: the text before call %d is missing", sql, got, i)
		}
		if c.Start > 0 && lex.InWord(sql[c.Start-1]) {
			rest, _ = bytes.CutPrefix(rest, []byte(" "))
		}
		rest, ok = bytes.CutPrefix(rest, subs[i].append(nil, &st.Calls[i], sql))
		if !ok {
			t.Fatalf("%q -> %q: the replacement of call %d is missing", sql, got, i)
		}
		from = c.End
	}
	if _, ok := through(rest, sql[from:]); !ok {
		t.Fatalf("%q -> %q: the end is missing", sql, got)
	}
	if nextvals != total || nextvals > 0 && firsts != 1 {
		t.Fatalf("%q: %d NEXTVALs, %d needed, %d made insert id", sql, nextvals, total, firsts)
	}
	hidden := st.HiddenParams(subs)
	if !slices.IsSorted(hidden) || len(slices.Compact(slices.Clone(hidden))) != len(hidden) {
		t.Fatalf("%q: hidden parameters %v are not rising", sql, hidden)
	}
	var again Statement
	again.Analyze(got, st.mode)
	if again.Kind != st.Kind {
		t.Fatalf("%q -> %q: the kind changed from %s to %s", sql, got, kindNames[st.Kind], kindNames[again.Kind])
	}
	markers := 0 // of replaced calls
	for i := range st.Calls {
		if subs[i].Replacement != Keep {
			markers += st.Calls[i].Markers()
		}
	}
	if again.Params != st.Params-markers+len(hidden) {
		t.Fatalf("%q -> %q: %d parameters, want %d - %d + %d", sql, got, again.Params, st.Params, markers, len(hidden))
	}
	at := 0
	for _, h := range hidden { // each is the index of its number's marker
		for l := (lex.Lexer{Src: got, Mode: st.mode}); ; {
			if l.Next(); l.Kind == lex.EOF {
				t.Fatalf("%q -> %q: parameter %d is missing", sql, got, h)
			}
			if l.Is('?') {
				if at++; at > h {
					before, after := got[:l.Start], got[l.End:]
					if !bytes.HasSuffix(before, []byte("(")) || len(after) == 0 || after[0] != ')' && after[0] != ' ' && after[0] != '|' {
						t.Fatalf("%q -> %q: parameter %d is none of the proxy's", sql, got, h)
					}
					break
				}
			}
		}
		at = 0
	}
}

// through moves past want in text. Aliases in between are allowed.
func through(text, want []byte) ([]byte, bool) {
	for len(want) > 0 {
		if len(text) > 0 && text[0] == want[0] && !bytes.HasPrefix(text, []byte(" AS `")) {
			text, want = text[1:], want[1:]
			continue
		}
		if rest, ok := through1(text, want); ok {
			return rest, true
		}
		return nil, false
	}
	return skipAliasAtEnd(text), true
}

// through1 tries both meanings of " AS `": part of the text, or an added alias.
func through1(text, want []byte) ([]byte, bool) {
	if len(text) > 0 && len(want) > 0 && text[0] == want[0] {
		if rest, ok := through(text[1:], want[1:]); ok {
			return rest, true
		}
	}
	if rest, ok := skipAlias(text); ok {
		return through(rest, want)
	}
	return nil, false
}

func skipAlias(text []byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(text, []byte(" AS `"))
	if !ok {
		return text, false
	}
	for i := 0; i < len(rest); i++ {
		if rest[i] == '`' {
			if i+1 < len(rest) && rest[i+1] == '`' {
				i++
				continue
			}
			return rest[i+1:], true
		}
	}
	return text, false
}

func skipAliasAtEnd(text []byte) []byte {
	rest, _ := skipAlias(text)
	return rest
}
