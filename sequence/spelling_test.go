package sequence_test

import (
	"errors"
	"testing"

	"seqproxy/sequence"
)

// What a shard calls a character set becomes no SQL of the sequence server.
func TestACharacterSetIsAPlainWord(t *testing.T) {
	s := newPlace(t).open(t)
	for charset, want := range map[string]string{
		"latin1": "\u00e9", // the server's own conversion
		"latin1 X'41' USING utf8mb4), (SELECT 1) -- ": "",
		"latin1 X'41' USING utf8mb4) -- ":             "",
		"latin1 X'41'":                                "",
		"LATIN1":                                      "",
		"":                                            "",
		"no_such_set":                                 "",
	} {
		got, err := s.InUTF8(t.Context(), charset, []byte{0xe9})
		if string(got) != want || want == "" && !errors.Is(err, sequence.ErrNoText) {
			t.Errorf("%q: got %q, %v; want %q or ErrNoText", charset, got, err, want)
		}
	}
}
