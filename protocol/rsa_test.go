package protocol

import "testing"

func TestAKeyIsMadeOnceForAllThatNeedIt(t *testing.T) {
	keys := NewRSAKeys()
	first := make(chan *rsaPair)
	for range 4 {
		go func() {
			pair, _ := keys.load()
			first <- pair
		}()
	}
	want := <-first
	for range 3 {
		if got := <-first; got == nil || got != want {
			t.Errorf("got another key for another caller")
		}
	}
}
