package sequence

import (
	"testing"
	"time"
)

func TestNameMadeSinceTheServerWasAskedIsNotRememberedAsUnknown(t *testing.T) {
	var u unknownNames
	before := u.generation()
	u.add("albums", time.Now().Add(time.Minute), before)
	if !u.has([]byte("albums"), time.Now()) {
		t.Error("an unknown name was not remembered")
	}
	u.clear() // CREATE on this proxy, while the answer to a look-up is on its way
	u.add("photos", time.Now().Add(time.Minute), before)
	if u.has([]byte("photos"), time.Now()) {
		t.Error("the answer from before CREATE is remembered after it")
	}
	u.add("photos", time.Now().Add(time.Minute), u.generation())
	if !u.has([]byte("photos"), time.Now()) {
		t.Error("an answer from after CREATE was not remembered")
	}
}
