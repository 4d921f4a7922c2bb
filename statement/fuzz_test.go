package statement

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// modes are the modes that fuzzing goes through, by one byte.
func modeOf(b byte) Mode {
	return Mode{
		SQLMode: SQLMode{NoBackslashEscapes: b&1 != 0, ANSIQuotes: b&2 != 0, Brackets: b&32 != 0},
		Charset: Charset(b >> 2 % 8),
	}
}

// FuzzAnalyze: no text makes Analyze or Rewrite panic, offsets are in order and
// in range, a rewrite that keeps everything gives the text back, one that
// replaces calls changes nothing outside of them, and a reused Statement finds
// the same as a fresh one.
func FuzzAnalyze(f *testing.F) {
	for _, sql := range corpus {
		f.Add([]byte(sql), byte(0))
		f.Add([]byte(sql), byte(2))
		f.Add([]byte(sql), byte(GBK)<<2)
	}
	var used Statement
	f.Fuzz(func(t *testing.T, sql []byte, m byte) {
		mode := modeOf(m)
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
		SimpleSelect(sql, mode)
		SchemasNamed(sql, mode)
	})
}

// outcome is what of a Statement a caller sees, without its memory.
func outcome(st *Statement) Statement {
	out := *st
	out.levels, out.arena, out.ddl = nil, nil, nil
	if st.Sequence != nil {
		ddl := *st.Sequence
		ddl.Names, ddl.Schemas = append([][]byte{}, ddl.Names...), append([]int{}, ddl.Schemas...)
		out.Sequence = &ddl
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

// checkDotted: where s.NEXTVAL is taken for a sequence's, every other s in the text is in a
// string or a comment, the name of a sequence in another call, or another word.
func checkDotted(t *testing.T, sql []byte, st *Statement) {
	t.Helper()
	for _, c := range st.Calls {
		if c.Spelling != AsColumn || !ascii(c.Name) || len(c.Name) == 0 {
			continue
		}
		var before [3]lexer // tokens
		for l := (lexer{src: sql, mode: st.mode}); ; {
			before[2], before[1], before[0] = before[1], before[0], l
			if l.next(); l.kind == tEOF {
				break
			}
			if l.kind != tWord && l.kind != tQuoted || !bytes.EqualFold(new(arena).decode(l), c.Name) {
				continue
			}
			after := l
			if after.next(); after.is('.') {
				if after.next(); isDottedWord(&after) && after.kind == tWord {
					continue
				}
			}
			if isDottedWord(&l) && before[0].is('.') { // of a sequence that is called so
				continue
			}
			function := before[0].is('(') || before[0].is('.') && before[2].is('(') || before[0].kw == kwFor || before[0].is('.') && before[2].kw == kwFor
			if !function {
				t.Fatalf("%q: %q is taken for a sequence, and is at %d, too", sql, c.Name, l.start)
			}
		}
	}
}

// checkRewrite replaces all calls, and takes the replacements out again.
func checkRewrite(t *testing.T, sql []byte, st *Statement) {
	t.Helper()
	needs := st.Needs(nil, bytes.Equal)
	known := Known{LastInsertID: 77, ConnectionID: 1 << 31, Params: true}
	total := 0
	for _, n := range needs {
		known.Taken = append(known.Taken, Taken{First: 1000})
		total += n.Count
	}
	subs := st.Substitutions(nil, needs, bytes.Equal, known)
	if len(subs) != len(st.Calls) {
		t.Fatalf("got %d substitutions for %d calls", len(subs), len(st.Calls))
	}
	got := st.Rewrite(nil, sql, subs)

	// Every byte outside of replaced calls must be there, in order; between
	// them only replacements and aliases.
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
			t.Fatalf("%q -> %q: the text before call %d is not there", sql, got, i)
		}
		if c.Start > 0 && inWord(sql[c.Start-1]) {
			rest, _ = bytes.CutPrefix(rest, []byte(" "))
		}
		rest, ok = bytes.CutPrefix(rest, subs[i].append(nil, &st.Calls[i], sql))
		if !ok {
			t.Fatalf("%q -> %q: the replacement of call %d is not there", sql, got, i)
		}
		from = c.End
	}
	if _, ok := through(rest, sql[from:]); !ok {
		t.Fatalf("%q -> %q: the end is not there", sql, got)
	}
	if nextvals != total || nextvals > 0 && firsts != 1 {
		t.Fatalf("%q: %d NEXTVALs, %d needed, %d made insert id", sql, nextvals, total, firsts)
	}
	hidden := st.HiddenParams(nil, subs)
	if !slices.IsSorted(hidden) || len(slices.Compact(slices.Clone(hidden))) != len(hidden) {
		t.Fatalf("%q: hidden parameters %v are not rising", sql, hidden)
	}
	var again Statement
	again.Analyze(got, st.mode)
	if again.Kind != st.Kind {
		t.Fatalf("%q -> %q: the kind changed from %s to %s", sql, got, kindNames[st.Kind], kindNames[again.Kind])
	}
	markers := 0 // of calls that were replaced
	for i := range st.Calls {
		if subs[i].Replacement != Keep {
			markers += st.Calls[i].Markers()
		}
	}
	if again.Params != st.Params-markers+len(hidden) {
		t.Fatalf("%q -> %q: %d parameters, want %d - %d + %d", sql, got, again.Params, st.Params, markers, len(hidden))
	}
	at := 0
	for _, h := range hidden { // each is the marker of its number
		for l := (lexer{src: got, mode: st.mode}); ; {
			if l.next(); l.kind == tEOF {
				t.Fatalf("%q -> %q: there is no parameter %d", sql, got, h)
			}
			if l.is('?') {
				if at++; at > h {
					before, after := got[:l.start], got[l.end:]
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

// through goes past want in text, over at most aliases in between.
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

// through1 tries both readings of " AS `": as the text's own, and as an alias.
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

// FuzzLexer compares what is string, comment or identifier with a reference
// that goes byte by byte and asks the lexer for nothing but where a word begins.
func FuzzLexer(f *testing.F) {
	for _, sql := range corpus {
		f.Add([]byte(sql), byte(0))
		f.Add([]byte(sql), byte(1))
		f.Add([]byte(sql), byte(2))
		f.Add([]byte(sql), byte(GBK)<<2)
		f.Add([]byte(sql), byte(SJIS)<<2)
	}
	f.Fuzz(func(t *testing.T, sql []byte, m byte) {
		mode := modeOf(m)
		if mode.Charset == Unsupported {
			return
		}
		want, wantOK := referenceCode(sql, mode)
		got := make([]bool, len(sql))
		l := lexer{src: sql, mode: mode}
		end := 0
		for l.next(); l.kind != tEOF; l.next() {
			if l.start < end || l.end <= l.start || l.end > len(sql) {
				t.Fatalf("%q: token at [%d,%d) after %d", sql, l.start, l.end, end)
			}
			end = l.end
			text := l.kind == tString || l.kind == tQuoted || l.kind == tUserVar
			for i := l.start; i < l.end; i++ {
				got[i] = !text
			}
			if text {
				// The letters in front of a string and @ are code in the reference.
				for i := l.start; i < l.end && !isQuote(sql[i]); i++ {
					got[i] = true
				}
			}
		}
		if l.bad == wantOK && !(l.bad && unreadable(sql[end:], mode)) {
			t.Fatalf("%q %+v: got bad %v, want ok %v", sql, mode, l.bad, wantOK)
		}
		if l.bad {
			return
		}
		for i := range sql {
			if isSpace(sql[i]) {
				continue // the reference calls space in code code
			}
			if got[i] != want[i] {
				t.Fatalf("%q %+v: byte %d (%q): got code %v, want %v", sql, mode, i, sql[i], got[i], want[i])
			}
		}
	})
}

// noExponent is a number whose exponent may lack its digits.
var noExponent = regexp.MustCompile(`\.[0-9]*[eE]`)

// unreadable reports whether there is in text what the lexer gives up at though
// it is neither string nor comment: a number such as 1.e, or a user variable
// whose multi-byte characters may have punctuation in them.
func unreadable(text []byte, mode Mode) bool {
	for i, c := range text {
		if c != '@' || !mode.Charset.multi() {
			continue
		}
		for i++; i < len(text) && (wordByte[text[i]] || text[i] == '.'); i++ {
			if text[i] >= 0x80 {
				return true
			}
		}
	}
	return noExponent.Match(text)
}

func isQuote(c byte) bool { return c == '\'' || c == '"' || c == '`' }
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// referenceCode marks the bytes that are code: outside of quotes, comments and
// the marks of executable comments. ok is false if the text cannot be read.
func referenceCode(sql []byte, mode Mode) (code []bool, ok bool) {
	code = make([]bool, len(sql))
	at := func(i int) int {
		if i < len(sql) {
			return int(sql[i])
		}
		return -1
	}
	// char is the length of the character at i, as the server sees it.
	char := func(i int) int {
		a, b := at(i), at(i+1)
		in := func(x, lo, hi int) bool { return x >= lo && x <= hi }
		tail := in(b, 0x40, 0x7e) || in(b, 0x80, 0xfe)
		two := false
		switch mode.Charset {
		case GBK:
			two = in(a, 0x81, 0xfe) && tail
		case GB18030:
			if in(a, 0x81, 0xfe) && in(b, 0x30, 0x39) && in(at(i+2), 0x81, 0xfe) && in(at(i+3), 0x30, 0x39) {
				return 4
			}
			two = in(a, 0x81, 0xfe) && tail
		case Big5:
			two = in(a, 0xa1, 0xf9) && (in(b, 0x40, 0x7e) || in(b, 0xa1, 0xfe))
		case SJIS:
			two = (in(a, 0x81, 0x9f) || in(a, 0xe0, 0xfc)) && (in(b, 0x40, 0x7e) || in(b, 0x80, 0xfc))
		}
		if two {
			return 2
		}
		return 1
	}
	hidden := false // in an executable comment that a server may skip
	inside := false // in an executable comment
	last := 0       // byte of code
	ends := func(c int) bool {
		return c >= 0x80 && mode.Charset.single() && (mode.Charset.upper(byte(c)) == 'c' || mode.Charset.upper(byte(c)) == 's')
	}
	for i := 0; i < len(sql); {
		c := at(i)
		switch {
		case c == '\'' || c == '"' || c == '`':
			escapes := c != '`' && !mode.NoBackslashEscapes && (c == '\'' || !mode.ANSIQuotes)
			// x'..' and b'..' know no escapes, if they stand alone.
			if c == '\'' && i > 0 && bytes.IndexByte([]byte("xXbB"), sql[i-1]) >= 0 && prefixAlone(sql, code, i-1, mode) {
				escapes = false
			}
			j := i + 1
			for {
				if j >= len(sql) {
					return code, false
				}
				if n := char(j); n > 1 {
					j += n
					continue
				}
				if escapes && sql[j] == '\\' {
					j += 2
					continue
				}
				if at(j) == c {
					if at(j+1) != c {
						break
					}
					j++
				}
				j++
			}
			text := sql[i : j+1]
			identifier := c == '`' || c == '"' && mode.ANSIQuotes
			afterAt := i > 0 && code[i-1] && sql[i-1] == '@'
			if identifier && !afterAt && bytes.IndexByte(text, 0) >= 0 {
				return code, false
			}
			if hidden && bytes.Contains(text, []byte("*/")) {
				return code, false
			}
			i, last = j+1, '"'
		case c == '#', c == '-' && at(i+1) == '-' && (at(i+2) <= ' ' || at(i+2) == 0x7f || ends(at(i+2))):
			for i < len(sql) && sql[i] != '\n' && sql[i] != 0 {
				i++
			}
		case c == '/' && at(i+1) == '*':
			maria := at(i+2) == 'M' && at(i+3) == '!'
			if inside && (at(i+2) == '!' || maria) {
				return code, false
			}
			if !inside && (at(i+2) == '!' || maria) {
				i += 3
				if maria {
					i++
				}
				digits, version := 0, 0
				for digits < 6 && at(i+digits) >= '0' && at(i+digits) <= '9' {
					version = version*10 + at(i+digits) - '0'
					digits++
				}
				if digits >= 5 {
					i += digits
				}
				inside = true
				hidden = maria || digits == 6 || digits == 5 && version > 50699
				continue
			}
			n := bytes.Index(sql[i+2:], []byte("*/"))
			if n < 0 {
				return code, false
			}
			i += n + 4
		case c == '*' && at(i+1) == '/' && inside:
			inside, hidden = false, false
			i += 2
		case c == 0 && (last == ';' || len(bytes.Trim(sql[i+1:], "; \t\n\v\f\r")) == 0):
			return code, !inside
		case c < ' ' && !isSpace(byte(c)), c == 0x7f, c == '[' && mode.Brackets:
			return code, false
		case c >= 0x80 && mode.Charset.single() && mode.Charset.upper(byte(c)) != 'w':
			if mode.Charset.upper(byte(c)) != 's' {
				return code, false
			}
			i++
		default:
			if !isSpace(byte(c)) {
				last = c
			}
			for n := char(i); n > 0; n-- {
				code[i] = true
				i++
			}
		}
	}
	return code, !inside
}

// prefixAlone reports whether the letter at i is a word of its own.
func prefixAlone(sql []byte, code []bool, i int, mode Mode) bool {
	if !code[i] {
		return false
	}
	l := lexer{src: sql[:i+1], mode: mode}
	for l.next(); l.kind != tEOF; l.next() {
		if l.end == i+1 {
			return l.kind == tWord && l.start == i
		}
	}
	return false
}
