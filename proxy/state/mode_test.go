package state

import "testing"

func TestASQLModeIsTakenFromTheTextOnlyIfItCanBeReadInOneWay(t *testing.T) {
	for literal, want := range map[string]string{
		"ansi": "ansi", "TRADITIONAL": "TRADITIONAL", "''": "", `"ANSI_QUOTES"`: "ANSI_QUOTES",
		"'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'": "ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
	} {
		if got, ok := plainMode(literal); !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", literal, got, ok, want)
		}
	}
	for _, literal := range []string{
		"", "4", "0x04", "x'414E5349'", "'ANSI' '_QUOTES'", `'ANSI\_QUOTES'`, "_utf8'ANSI'", "n'ANSI'", "DEFAULT", "default",
		"'ANSI' COLLATE utf8mb4_bin", "ANSI COLLATE utf8mb4_bin", "@@sql_mode", "'ANSI''_QUOTES'", "'DB2'", "'a b'", "'", "",
	} {
		if got, ok := plainMode(literal); ok {
			t.Errorf("%s: got %q, want it to be asked for", literal, got)
		}
	}
}

func TestAServersModeSaysWhatQuotesAndBracketsAre(t *testing.T) {
	for mode, want := range map[string]struct{ quotes, brackets bool }{
		"":                                   {},
		"STRICT_TRANS_TABLES":                {},
		"STRICT_TRANS_TABLES,ANSI_QUOTES":    {true, false},
		"REAL_AS_FLOAT,ANSI_QUOTES,ANSI":     {true, false},
		"ansi":                               {true, false},
		"PIPES_AS_CONCAT,ANSI_QUOTES,MSSQL":  {true, true},
		"NO_BACKSLASH_ESCAPES,NO_ZERO_DATES": {},
	} {
		var st State
		st.Mode.ANSIQuotes, st.Mode.Brackets = !want.quotes, !want.brackets
		st.SetSQLMode(mode)
		if st.Mode.ANSIQuotes != want.quotes || st.Mode.Brackets != want.brackets {
			t.Errorf("%s: got quotes %v, brackets %v, want %v", mode, st.Mode.ANSIQuotes, st.Mode.Brackets, want)
		}
	}
}
