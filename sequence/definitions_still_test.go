package sequence_test

import (
	"testing"
	"time"

	"seqproxy/sequence"
)

// A proxy stops in the middle of a change of definitions, as on a suspended machine. Others make
// their changes some seconds later, and its own change begins anew.
func TestAProxyThatStandsStillInAChangeHoldsUpOthersForSeconds(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 7})
	soon := func(o *sequence.Options) {
		sequence.SetUsualTiming(o)
		sequence.ChangeTiming(o, func(t *sequence.Timing) { t.EditSilence = 4 * time.Second })
	}
	still, other := p.open(t, soon), p.open(t, soon)
	if err := sequence.Inside(still).MeetPlan(t.Context()); err != nil {
		t.Fatal(err)
	}
	attempts := 0
	locked, wake, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- sequence.Inside(still).ChangeWith(t.Context(), "photos", func() error {
			if attempts++; attempts == 1 {
				close(locked)
				<-wake
			}
			return nil
		})
	}()
	select {
	case <-locked:
	case err := <-ended:
		t.Fatal(err)
	}
	within(t, 40*time.Second, "another proxy makes a sequence", func() bool {
		_, err := other.Create(t.Context(), sequence.CreateOptions{Name: "videos", IfNotExists: true})
		return err == nil
	})
	close(wake)
	if err := <-ended; err == nil && attempts == 1 {
		t.Error("the change that stood still is made")
	}
	mustCreate(t, still, sequence.CreateOptions{Name: "albums"})
}
