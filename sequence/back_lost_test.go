package sequence_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"seqproxy/sequence"
)

// All proxies are killed and lose their state, and one of several members is restored from an old
// backup: the rows of the others show above which number to go on.
func TestAMemberThatIsRestoredWhenAllProxiesAreLostRepeatsNoNumber(t *testing.T) {
	for _, c := range []struct {
		name    string
		divide  func(*sequence.Options)
		members int
	}{{"blocks", blocks(10), 2}, {"blocks of three", blocks(10), 3}, {"steps", inSteps, 2}} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, c.members)
			var book ledger
			open := func() []*sequence.Sequences {
				lost := filepath.Join(t.TempDir(), "state")
				return []*sequence.Sequences{f.open(t, c.divide, steadySize(7), patience(2*time.Minute), stateIn(lost)), f.open(t, c.divide, steadySize(7), patience(2*time.Minute))}
			}
			first := open()
			createOn(t, first[0], "photos")
			use := func(who string, all []*sequence.Sequences, n int) {
				t.Helper()
				for range n {
					for _, s := range all {
						book.add(t, who, mustTake(t, s, "photos", 1), 1)
					}
				}
			}
			use("before the backup", first, 5)
			for _, s := range first {
				settled(t, s, "photos")
			}
			backup := f.ids(t, "photos")
			use("after it", first, 200)
			for _, s := range first {
				settled(t, s, "photos")
				cutOff(t, s)
			}
			ids := f.ids(t, "photos")
			// Only the highest one knows what it gave alone.
			restored := slices.Index(ids, slices.Min(ids))
			f[restored].exec(t, "UPDATE sequence SET id = ? WHERE name = 'photos'", backup[restored])
			use("without a memory", open(), 200)
			if got := f.ids(t, "photos"); got[restored] < ids[restored] {
				t.Errorf("the restored row stands at %d of %d, and was not used", got[restored], ids[restored])
			}
		})
	}
}

// One of several members is restored from an old backup while a live proxy has given little there,
// and dead ones gave much. The live one has seen that row before, or only the others'.
func TestAMemberThatIsRestoredRepeatsNoNumberOfAProxyThatDied(t *testing.T) {
	for _, c := range []struct {
		name   string
		divide func(*sequence.Options)
	}{{"blocks", blocks(10)}, {"steps", inSteps}} {
		for _, knows := range []string{"it has seen the row", "it has not", "it has, before the backup, and the member was away"} {
			t.Run(c.name+", "+knows, func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, 2)
				var book ledger
				lives, died := f.open(t, c.divide, steadySize(10), patience(2*time.Minute)), f.open(t, c.divide, steadySize(10), patience(2*time.Minute))
				createOn(t, died, "photos")
				give := func(who string, s *sequence.Sequences, n int) {
					t.Helper()
					book.take(t, who, s, "photos", n)
					settled(t, s, "photos")
				}
				// turn makes the next reservation go to one of them.
				reserveNextOn := func(next int) {
					sequence.Inside(lives).LastMember("photos", 1-next)
				}
				give("died", died, 35)
				backup := f.ids(t, "photos")
				seen := knows == "it has seen the row"
				if seen {
					give("died", died, 100)
					give("lives", lives, 60)
					give("died", died, 400)
				} else {
					if _, err := lives.Exists(t.Context(), []byte("photos")); err != nil {
						t.Fatal(err)
					}
					if knows != "it has not" {
						give("lives", lives, 60)
						backup = f.ids(t, "photos")
						give("died", died, 400)
					} else {
						give("died", died, 400)
					}
				}
				cutOff(t, died)
				ids := f.ids(t, "photos")
				restored := slices.Index(ids, slices.Min(ids))
				f[restored].exec(t, "UPDATE sequence SET id = ? WHERE name = 'photos'", backup[restored])
				if knows == "it has, before the backup, and the member was away" {
					v := sequence.Inside(lives).Members()[restored]
					v.LeaveOut(errors.New("it is away"))
					v.TakeIn()
				}
				reserveNextOn(restored)
				give("lives", lives, 600)
				if got := f.ids(t, "photos"); got[restored] < ids[restored] {
					t.Errorf("the restored row stands at %d of %d, and was not used", got[restored], ids[restored])
				}
			})
		}
	}
}
