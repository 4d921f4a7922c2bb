package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestEveryBucketHoldsItsOwnMiddle(t *testing.T) {
	last := -1
	for v := uint64(0); v < 1<<40; v += v/100 + 1 {
		i := bucket(v)
		if i < last {
			t.Fatalf("bucket(%d) = %d is below the one of a smaller value, %d", v, i, last)
		}
		last = i
		middle := bucketMiddle(i)
		if bucket(middle) != i {
			t.Fatalf("middle %d of bucket %d is in bucket %d", middle, i, bucket(middle))
		}
		if diff := max(middle, v) - min(middle, v); diff > v/subBuckets+1 {
			t.Fatalf("value %d counts as %d", v, middle)
		}
	}
	new(histogram).add(1<<63 - 1) // must not panic
}

func TestQuantilesAreWithinOneBucket(t *testing.T) {
	var a, b histogram
	for i := range 1000 {
		a.add(time.Duration(i) * time.Microsecond)
		b.add(time.Duration(i+1000) * time.Microsecond)
	}
	a.merge(&b)
	for q, want := range map[float64]time.Duration{0: 0, 0.5: time.Millisecond, 0.99: 1980 * time.Microsecond, 1: 1999 * time.Microsecond} {
		got := a.quantile(q)
		if diff := (got - want).Abs(); diff > want/subBuckets {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	if got := new(histogram).quantile(0.5); got != 0 {
		t.Errorf("empty: got %v, want 0", got)
	}
}

func TestNumbersGivenTwiceAreNoticed(t *testing.T) {
	var s numberSet
	if err := s.addAll([][]uint64{{1, 3, 1 << 40}, {2, 4}}); err != nil {
		t.Fatal(err)
	}
	if err := s.addAll([][]uint64{{5, 6}, {1 << 40}}); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("a number of an earlier measurement: got %v", err)
	}
	for name, numbers := range map[string][]uint64{"zero": {0}, "falling": {9, 8}, "repeated": {10, 10}} {
		if err := new(numberSet).addAll([][]uint64{numbers}); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// countingWorker does nothing, and fails at its limit-th operation if that is not 0.
type countingWorker struct {
	n, limit int
	slow     time.Duration
}

var errWorker = errors.New("wrong answer")

func (w *countingWorker) do() (int, error) {
	time.Sleep(max(w.slow, time.Millisecond))
	if w.n++; w.n == w.limit {
		return 0, errWorker
	}
	return 2, nil
}

func (*countingWorker) close() error { return nil }

func TestLoadCountsOnlyWhatEndedInTheMeasuredTime(t *testing.T) {
	w := &countingWorker{}
	tm := timing{warm: 50 * time.Millisecond, measure: 100 * time.Millisecond}
	fig, err := loadTarget(t.Context(), &target{pid: os.Getpid()}, tm, []worker{w})
	if err != nil {
		t.Fatal(err)
	}
	counted := fig[opsPerSecond] * tm.measure.Seconds()
	if counted <= 0 || counted > 2*float64(w.n) || counted > 220 {
		t.Errorf("counted %.0f operations of %d", counted, 2*w.n)
	}
	if fig[p50] < 1000 || fig[p99] < fig[p50] {
		t.Errorf("p50 is %v us and p99 %v us, an operation takes at least 1000 us", fig[p50], fig[p99])
	}
	if fig[residentMB] <= 0 || fig[cpuPerOp] < 0 {
		t.Errorf("got %v", fig)
	}
}

func TestOperationLongerThanTheMeasurementIsWaitedFor(t *testing.T) {
	fig, err := loadTarget(t.Context(), &target{pid: os.Getpid()}, timing{measure: 50 * time.Millisecond},
		[]worker{&countingWorker{slow: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	// Two operations take at least 200 ms of the clock, because the first begins before it. Two in
	// the 50 ms of the measurement would be 40 a second.
	if got := fig[opsPerSecond]; got <= 0 || got > 10 {
		t.Errorf("got %v operations a second, want 10 at most", got)
	}
}

func TestWrongAnswerEndsTheMeasurementAtOnce(t *testing.T) {
	_, err := loadTarget(t.Context(), &target{pid: os.Getpid()}, timing{measure: time.Hour},
		[]worker{&countingWorker{}, &countingWorker{limit: 3}})
	if !errors.Is(err, errWorker) || !strings.Contains(err.Error(), "connection 1") {
		t.Errorf("got %v, want the error of connection 1", err)
	}
}

func TestSlowReaderIsHeldToItsRate(t *testing.T) {
	p := pacer{rate: 10 << 20, began: time.Now()}
	for range 1 << 10 { // 1 MiB, a tenth of a second
		if err := p.wait(t.Context(), 1<<10); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(p.began); took < 70*time.Millisecond {
		t.Errorf("read 1 MiB in %v at 10 MiB/s", took)
	}
}

func TestIncrementCarries(t *testing.T) {
	for in, want := range map[string]string{"1000000000": "1000000001", "1000000999": "1000001000"} {
		b := []byte(in)
		if increment(b); string(b) != want {
			t.Errorf("%s: got %s, want %s", in, b, want)
		}
	}
}
