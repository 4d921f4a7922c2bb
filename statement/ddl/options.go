package ddl

// SequenceOption is an option of CREATE SEQUENCE and ALTER SEQUENCE, for people.
type SequenceOption struct {
	Texts []string // its spellings, with what may be left out in brackets
	Help  string   // what it does, with links as on a page of docs
}

// SequenceOptions lists all of them but the kinds, which docs/kinds.md has.
func SequenceOptions() []SequenceOption {
	return []SequenceOption{
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
}
