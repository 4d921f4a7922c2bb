package limit

import "testing"

func TestRecordedCeilingsRiseUnderOneNumber(t *testing.T) {
	var r Recorded
	r.Learn(1, "photos", 200)
	r.Learn(1, "photos", 100)
	if ceiling, ok := r.Get(1, "photos"); ceiling != 200 || !ok {
		t.Errorf("got %d, %v, want 200: a ceiling does not go down", ceiling, ok)
	}
	if ceiling, ok := r.Get(2, "photos"); ok {
		t.Errorf("under another number: got %d", ceiling)
	}
	r.Learn(2, "photos", 50)
	r.Learn(2, "albums", 60)
	r.Drop("photos")
	if ceiling, ok := r.Get(2, "photos"); ok {
		t.Errorf("dropped: got %d", ceiling)
	}
	if ceiling, _ := r.Get(2, "albums"); ceiling != 60 {
		t.Errorf("of another name: got %d, want 60", ceiling)
	}
	if r.Forget(); len(r.by) != 0 {
		t.Errorf("forgotten: got %v", r.by)
	}
}

func TestACeilingIsRaisedByOneCallerAtATime(t *testing.T) {
	var r Recorded
	var raised []string
	r.Once("photos", func() {
		for _, name := range []string{"photos", "albums"} {
			r.Once(name, func() { raised = append(raised, name) })
		}
	})
	r.Once("photos", func() { raised = append(raised, "photos, again") })
	if len(raised) != 2 || raised[0] != "albums" || raised[1] != "photos, again" {
		t.Errorf("got %v", raised)
	}
}
