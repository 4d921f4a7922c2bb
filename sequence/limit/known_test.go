package limit

import "testing"

func TestKnownCeilingsRiseUnderOneNumber(t *testing.T) {
	var k Known
	k.Learn(1, "photos", 200)
	k.Learn(1, "photos", 100)
	if ceiling, ok := k.Get(1, "photos"); ceiling != 200 || !ok {
		t.Errorf("got %d, %v, want 200: a ceiling does not go down", ceiling, ok)
	}
	if ceiling, ok := k.Get(2, "photos"); ok {
		t.Errorf("under another number: got %d", ceiling)
	}
	k.Learn(2, "photos", 50)
	k.Learn(2, "albums", 60)
	k.Drop("photos")
	if ceiling, ok := k.Get(2, "photos"); ok {
		t.Errorf("dropped: got %d", ceiling)
	}
	if ceiling, _ := k.Get(2, "albums"); ceiling != 60 {
		t.Errorf("of another name: got %d, want 60", ceiling)
	}
	if k.Forget(); len(k.by) != 0 {
		t.Errorf("forgotten: got %v", k.by)
	}
}

func TestACeilingIsRaisedByOneCallerAtATime(t *testing.T) {
	var k Known
	var raised []string
	k.Once("photos", func() {
		for _, name := range []string{"photos", "albums"} {
			k.Once(name, func() { raised = append(raised, name) })
		}
	})
	k.Once("photos", func() { raised = append(raised, "photos, again") })
	if len(raised) != 2 || raised[0] != "albums" || raised[1] != "photos, again" {
		t.Errorf("got %v", raised)
	}
}
