package sequence_test

import (
	"errors"
	"strings"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/kind"
)

// The suffix of a name in the table counts. The test tries the first length that is refused, and
// the one before.
func TestANameHasToFitTheTable(t *testing.T) {
	p := newPlace(t).withTable(t, nil) // 50 characters
	s := p.open(t)
	made := func(k kind.Kind, err error) kind.Kind {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for _, c := range []struct {
		kind kind.Kind
		fits int
		why  string
	}{
		{kind.Kind{}, 50, "`name`"},
		{made(kind.NewRotate(1, 2, false)), 50 - len("#counter"), "#counter"},
		{made(kind.Parse("SNOWFLAKE")), 50 - len("#w1023#counter"), "#w1023#counter"},
		{made(kind.Parse("FORMAT '{yyyyMMdd}{n:4}' RESET DAILY")), 50 - len("@00000000#counter"), "@00000000#counter"},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			name := strings.Repeat("é", c.fits)
			for _, dry := range []bool{true, false} {
				_, err := s.Create(t.Context(), sequence.CreateOptions{Name: name + "n", Kind: c.kind, DryRun: dry})
				if !errors.Is(err, sequence.ErrBadOption) || !strings.Contains(err.Error(), c.why) {
					t.Errorf("dry run %t: got %v, want that the name is too long, and why", dry, err)
				}
			}
			if _, err := s.Create(t.Context(), sequence.CreateOptions{Name: name, Kind: c.kind, DryRun: true}); err != nil {
				t.Error(err)
			}
			if _, err := s.Take(t.Context(), []byte(name), 1); !errors.Is(err, sequence.ErrUnknown) {
				t.Errorf("a dry run: got %v, want that nothing was made", err)
			}
			if _, err := s.Create(t.Context(), sequence.CreateOptions{Name: name, Kind: c.kind}); err != nil {
				t.Error(err)
			}
			if _, err := s.Take(t.Context(), []byte(name), 1); err != nil {
				t.Error(err)
			}
			if _, err := s.Drop(t.Context(), []byte(name), false); err != nil {
				t.Error(err)
			}
		})
	}
}
