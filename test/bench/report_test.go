package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestRatioIsTheMedianOfTheRoundsRatios(t *testing.T) {
	var r results
	for round, v := range map[int][2]float64{1: {10, 10}, 2: {20, 10}, 3: {90, 30}} {
		r = append(r,
			result{Workload: "w", Contender: seqproxy, Round: round, Figures: figures{cpuPerOp: v[0]}},
			result{Workload: "w", Contender: haproxy, Round: round, Figures: figures{cpuPerOp: v[1]}})
	}
	// has no partner
	r = append(r, result{Workload: "w", Contender: seqproxy, Round: 4, Figures: figures{cpuPerOp: 1000}})
	if got := r.ratio("w", seqproxy, haproxy, cpuPerOp); got != (summary{2, 1, 3, 3}) {
		t.Errorf("got %+v, want a median of 2 between 1 and 3", got)
	}
	if got := r.summary("w", haproxy, cpuPerOp); got != (summary{10, 10, 30, 3}) {
		t.Errorf("got %+v", got)
	}
	if got := r.summary("w", direct, cpuPerOp); got.rounds != 0 || !math.IsNaN(got.median) {
		t.Errorf("nothing measured: got %+v", got)
	}
}

func TestMedianOfAnEvenNumberOfRoundsIsTheirMiddle(t *testing.T) {
	if got := summarize(map[int]float64{1: 4, 2: 1, 3: 2, 4: 100}); got.median != 3 {
		t.Errorf("got %v, want 3", got.median)
	}
}

func TestLimitsAreJudgedInTheirDirection(t *testing.T) {
	atMost := limit{workload: "w", contender: seqproxy, metric: cpuPerOp, against: haproxy, must: 1.35, aim: 1.2}
	atLeast := limit{workload: "w", contender: seqproxy, metric: cpuPerOp, atLeast: true, must: 0.9, aim: 1}
	for _, c := range []struct {
		limit limit
		value float64
		want  verdict
	}{
		{atMost, 1.2, aimReached},
		{atMost, 1.21, mustReached},
		{atMost, 1.36, missed},
		{atLeast, 1, aimReached},
		{atLeast, 0.95, mustReached},
		{atLeast, 0.89, missed},
	} {
		r := results{
			{Workload: "w", Contender: seqproxy, Round: 1, Figures: figures{cpuPerOp: c.value}},
			{Workload: "w", Contender: haproxy, Round: 1, Figures: figures{cpuPerOp: 1}},
		}
		if _, got := c.limit.judge(r); got != c.want {
			t.Errorf("%v of %+v: got %s, want %s", c.value, c.limit, got, c.want)
		}
	}
	if _, got := atMost.judge(nil); got != notMeasured {
		t.Errorf("nothing measured: got %s", got)
	}
	broken := results{{Workload: "w", Contender: seqproxy, Round: 2, Error: "wrong answer"}, {Workload: "w", Contender: seqproxy, Round: 1, Figures: figures{cpuPerOp: 5}}}
	if _, got := atLeast.judge(broken); got != missed {
		t.Errorf("a target that gave a wrong answer: got %s, want %s", got, missed)
	}
}

func TestEveryLimitIsAboutAWorkloadThatExists(t *testing.T) {
	all := plan(1000)
	names := map[string]workload{}
	for _, w := range all {
		if _, twice := names[w.name]; twice {
			t.Errorf("two workloads are called %s", w.name)
		}
		names[w.name] = w
	}
	for _, l := range limits {
		w, found := names[l.workload]
		if !found {
			t.Errorf("limit on %s: no such workload", l.workload)
			continue
		}
		for _, name := range []string{l.contender, l.against} {
			found := name == ""
			for _, c := range w.contenders {
				found = found || c.name == name
			}
			if !found {
				t.Errorf("limit on %s: no contender %q", l.workload, name)
			}
		}
		if l.atLeast != (l.aim > l.must) {
			t.Errorf("limit on %s: aim %v is easier than must %v", l.workload, l.aim, l.must)
		}
	}
}

func TestTableShowsFiguresFailuresAndLimits(t *testing.T) {
	w := choose(plan(10), regexp.MustCompile("^select1_c16pin$"), []string{direct, haproxy, seqproxy})
	fig := func(ops, cpu float64) figures {
		return figures{opsPerSecond: ops, cpuPerOp: cpu, p50: 20, p99: 12345, residentMB: 3}
	}
	rep := report{Heading: []string{"a machine"}, Workloads: w, Results: results{
		{Workload: w[0].name, Contender: direct, Round: 1, Figures: fig(50000, 10)},
		{Workload: w[0].name, Contender: haproxy, Round: 1, Error: "got value \"2\" | want\n\"1\""},
		{Workload: w[0].name, Contender: seqproxy, Round: 1, Figures: fig(20000, 24)},
	}}
	var out strings.Builder
	if err := rep.writeMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- a machine\n",
		"## SELECT 1; 16 connections, one CPU (`select1_c16pin`)",
		"| direct | 50.0k (50.0k-50.0k) | 1.00 | 10.0 (10.0-10.0) | - | 20 | 12.3k | 3.0 |",
		`| haproxy | fails: got value "2" \| want "1" | - | - | - | - | - | - |`,
		"| seqproxy | 20.0k (20.0k-20.0k) | 0.40 | 24.0 (24.0-24.0) | - |",
		"| select1_c16pin | CPU vs HAProxy | - | <= 1.35 | <= 1.2 | not measured | - |",
		"| 1 of 3 | 0 | 0 | **missed** | - |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("missing %q in\n%s", want, out.String())
		}
	}
	path := filepath.Join(t.TempDir(), "figures.json")
	if err := rep.writeJSON(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"cpu_us_per_op": 24`) {
		t.Errorf("JSON lacks the CPU time: %s", text)
	}
}

func TestEstimateGrowsWithRoundsAndTime(t *testing.T) {
	all := plan(1000)
	short := estimate(all, 1, timing{measure: 100 * time.Millisecond})
	if long := estimate(all, 5, timing{measure: time.Second}); long < 3*short || long > time.Hour {
		t.Errorf("got %v for a short run and %v for a long one", short, long)
	}
}
