package history

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func made(calls ...call) *History { return &History{begin: time.Now(), calls: calls} }

func TestHistoriesAreJudged(t *testing.T) {
	for _, test := range []struct {
		name  string
		calls []call
		want  string // in the error; "" if there is none
	}{
		{"nothing", nil, ""},
		{"one after the other", []call{{"a", 1, 1, 0, 1}, {"b", 5, 9, 2, 3}, {"a", 10, 10, 4, 5}}, ""},
		{"at the same time, the other way round", []call{{"a", 10, 10, 0, 5}, {"b", 5, 9, 1, 3}, {"c", 1, 1, 2, 6}}, ""},
		{"the same moment counts as the same time", []call{{"a", 2, 2, 0, 1}, {"b", 1, 1, 1, 2}}, ""},
		{"the later one has the lower number", []call{{"a", 2, 2, 0, 1}, {"b", 1, 1, 2, 3}}, "2 to 2 by a, asked at 0s, answered at 1ns; and then 1 to 1 by b"},
		{
			"a long call between two does not excuse them",
			[]call{{"a", 7, 7, 1, 2}, {"long", 6, 6, 0, 9}, {"b", 5, 5, 3, 4}},
			"7 to 7 by a, asked at 1ns, answered at 2ns; and then 5 to 5 by b",
		},
		{"a number twice", []call{{"a", 1, 3, 0, 1}, {"b", 3, 3, 2, 3}}, "given twice"},
		{"a run twice", []call{{"a", 1, 3, 0, 1}, {"b", 1, 3, 2, 3}}, "given twice"},
		{"no number", []call{{"a", 0, 0, 0, 1}}, "no numbers"},
	} {
		err := made(test.calls...).Check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}

// porcupine must agree with a direct check for two calls in the wrong order, on any history.
func TestTheCheckerAgreesWithADirectLook(t *testing.T) {
	good := 0
	for range 3000 {
		calls := make([]call, 1+rand.IntN(12))
		for i := range calls {
			asked := time.Duration(i + rand.IntN(3))
			calls[i] = call{"x", uint64(i + 1), uint64(i + 1), asked, asked + time.Duration(rand.IntN(5))}
		}
		inverted := false
		for i := range calls {
			for j := range i {
				inverted = inverted || calls[i].answered < calls[j].asked
			}
		}
		if err := made(calls...).Check(); (err != nil) != inverted {
			t.Fatalf("%+v: got %v, want an error: %v", calls, err, inverted)
		} else if err == nil {
			good++
		}
	}
	if good < 300 || good > 2700 {
		t.Errorf("%d of 3000 histories were in order; want many of both kinds", good)
	}
}

func TestCallsThatFailAreAsIfTheyHadNotBeenMade(t *testing.T) {
	var h History
	boom := errors.New("unexpected EOF")
	for i, want := range []error{nil, boom, nil} {
		err := h.Record("a", func() (uint64, uint64, error) { return uint64(i + 1), uint64(i + 1), want })
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if given, failed := h.Count(); given != 2 || failed != 1 || h.Check() != nil {
		t.Errorf("got %d and %d, %v; want 2 and 1, in order", given, failed, h.Check())
	}
}
