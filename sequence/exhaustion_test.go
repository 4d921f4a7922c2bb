package sequence_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
)

func TestWarningsComeOnceAtEachMarkBeforeTheEnd(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	core, logs := observer.New(zap.WarnLevel)
	s := p.open(t, func(o *sequence.Options) { o.Logger = zap.New(core) })
	warned := func(name string) (said []string) {
		for _, line := range logs.FilterMessage("sequence nears its end").FilterField(zap.String("sequence", name)).All() {
			said = append(said, fmt.Sprint(line.ContextMap()["reserved_up_to"], " of ", line.ContextMap()["end"]))
		}
		return said
	}
	for _, c := range []struct {
		o     sequence.CreateOptions
		takes int
		want  []string
	}{
		{sequence.CreateOptions{Name: "maximum", Max: 200}, 199, []string{"150 of 200", "180 of 200", "198 of 200"}},
		{sequence.CreateOptions{Name: "between", Min: 1001, Max: 1100}, 80, []string{"1075 of 1100"}},
		{sequence.CreateOptions{Name: "steps", Increment: 10, Max: 1000}, 95, []string{"751 of 1000", "901 of 1000"}},
		{sequence.CreateOptions{Name: "owner", Start: 190, OwnerMax: 255, OwnedBy: define.Column{Schema: "app", Table: "flags", Column: "id"}, Cache: 1}, 3, []string{"192 of 255"}},
		{sequence.CreateOptions{Name: "json", Start: 1<<53 - 100, JSONSafe: true, Cache: 1}, 20, []string{fmt.Sprintf("%d of %d", 1<<53-100, 1<<53-1)}},
		{sequence.CreateOptions{Name: "cycle", Max: 20, Cycle: true}, 50, nil},
		{sequence.CreateOptions{Name: "far", Start: 1 << 62}, 20, nil},
	} {
		mustCreate(t, s, c.o)
		for range c.takes {
			mustTake(t, s, c.o.Name, 1)
		}
		settled(t, s, c.o.Name)
		if got := warned(c.o.Name); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: warned at %q, want %q", c.o.Name, got, c.want)
		}
	}
	infos, err := s.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		switch {
		case i.Name == "maximum" && (i.End != 200 || i.Used < 99.4 || i.Used > 100 || i.ToEnd > time.Hour || i.Rate <= 0 || i.Skew == sequence.Never),
			i.Name == "between" && (i.End != 1100 || i.Used < 79 || i.Used > 85),
			i.Name == "far" && (i.Used < 24 || i.Used > 26 || i.ToEnd < 1000*time.Hour):
			t.Errorf("List says %+v", i)
		}
	}
}

// The warnings count in digits, bits, and time.
func TestWarningsCountInWhatAKindHas(t *testing.T) {
	p := newPlace(t)
	core, logs := observer.New(zap.WarnLevel)
	s := p.open(t, func(o *sequence.Options) { o.Logger = zap.New(core) })
	const ticks = 1<<20 - 1
	epoch := time.Now().Add(-0.8 * ticks * time.Second).UTC().Format(time.RFC3339)
	for name, c := range map[string]struct {
		clause string
		takes  int
		want   string // of each warning, how much is used
	}{
		"format":  {"FORMAT '{yyyy}-{n:2}'", 95, "[75 90]"},
		"number":  {"FORMAT '{yyyy}{n:2}'", 80, "[75]"},
		"rotated": {"ROTATE 1 DIGITS 2", 95, "[75 90]"},
		"time":    {"SNOWFLAKE EPOCH '" + epoch + "' TICK '1s' TIME BITS 20 WORKER BITS 4 COUNTER BITS 8", 1, "[80]"},
		"early":   {"SNOWFLAKE", 1, "[]"},
	} {
		o := sequence.CreateOptions{Name: name, Kind: kindOf(t, c.clause), Cache: 1}
		if o.Kind.HasClock() {
			o.Cache = 0
		}
		mustCreate(t, s, o)
		for range c.takes {
			if _, err := s.TakeRun(t.Context(), []byte(name), 1); err != nil {
				t.Fatal(err)
			}
		}
		settled(t, s, name)
		used := func() string {
			said := []uint64{}
			for _, line := range logs.FilterMessage("sequence nears its end").FilterField(zap.String("sequence", name)).All() {
				at, end := line.ContextMap()["reserved_up_to"].(uint64), line.ContextMap()["end"].(uint64)
				if end != 99 && end != ticks {
					t.Errorf("%s: ends at %d", name, end)
				}
				said = append(said, at*100/end)
			}
			return fmt.Sprint(said)
		}
		eventually(t, fmt.Sprintf("%s warns at %s, and does so at %s", name, c.want, used()), func() bool { return used() == c.want })
	}
}
