package main

import (
	"strings"
	"testing"

	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// optionTexts are the options of CREATE SEQUENCE and ALTER SEQUENCE, for docs/statements.md, but
// for the kinds, which docs/kinds.md has.
var optionTexts = []struct {
	spellings []string // with what may be left out in brackets
	meaning   string
}{
	{[]string{"START [WITH] n"}, "the first number, and that of RESTART without one; MINVALUE by default"},
	{[]string{"INCREMENT [BY] n"}, "the distance between numbers; at least 1"},
	{[]string{"MINVALUE n", "NO MINVALUE"}, "where CYCLE begins again; at least 1"},
	{[]string{"MAXVALUE n", "NO MAXVALUE"}, "the last number; by default what the column `id` can hold, 18446744073709551615"},
	{[]string{"AS type"}, "the MAXVALUE of an integer type"},
	{[]string{"CACHE n", "NOCACHE", "CACHE DEFAULT"}, "at most n unused numbers in a proxy; [by the rate](sequences.md#size-of-the-cache)"},
	{[]string{"OUTAGE_COVER n", "OUTAGE_COVER DEFAULT"}, "without CACHE: for how many seconds unused numbers last"},
	{[]string{"CYCLE", "NOCYCLE"}, "begin again at MINVALUE: numbers repeat, so they are no keys"},
	{[]string{"COMMENT 'text'"}, "a comment"},
	{[]string{"OWNED BY [schema.]table.column", "OWNED BY NONE"}, "the [column](sequences.md#owned-by) whose keys the numbers are"},
	{[]string{"ORDER", "NOORDER"}, "numbers rise [in the order of time](sequences.md#order) over all proxies"},
	{[]string{"JSON_SAFE", "NO JSON_SAFE"}, "the numbers end at 2^53-1, up to which JavaScript is exact"},
	{[]string{"RESTART [[WITH] n] [FORCE]"}, "of ALTER: the next number; it only raises"},
}

// Each spelling that the page tells is read, with what may be left out and without.
func TestTheOptionsOfThePageAreRead(t *testing.T) {
	values := strings.NewReplacer(" n", " 7", " type", " INT")
	without := func(text string) string {
		for strings.Contains(text, "[") {
			open := strings.LastIndexByte(text, '[')
			end := open + strings.IndexByte(text[open:], ']')
			text = text[:open] + text[end+1:]
		}
		return text
	}
	for _, o := range optionTexts {
		for _, text := range o.spellings {
			for _, option := range []string{without(text), strings.NewReplacer("[", "", "]", "").Replace(text)} {
				for _, sql := range []string{"CREATE SEQUENCE s " + values.Replace(option), "ALTER SEQUENCE s " + values.Replace(option)} {
					var st statement.Statement
					st.Analyze([]byte(sql), lex.Mode{})
					refused := st.Sequence == nil || st.Sequence.Problem != "" || st.Sequence.Unsupported != ""
					if wantRefused := strings.Contains(sql, "CREATE SEQUENCE s RESTART"); refused != wantRefused {
						t.Errorf("%s: refused %v, want %v", sql, refused, wantRefused)
					}
				}
			}
		}
	}
}
