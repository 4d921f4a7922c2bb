package main

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestStatLineIsReadBehindTheName(t *testing.T) {
	line := "4711 (a (strange) name) S 1 2 3 4 5 6 7 8 9 10 700 50 1 2 20 0 3 0 99 1000 200 18446744073709551615"
	got, err := parseStat([]byte(line))
	if err != nil || got != 750 {
		t.Errorf("got %d, %v, want 750", got, err)
	}
	for _, bad := range []string{"", "4711 (x) S 1 2", "4711 (x) S 1 2 3 4 5 6 7 8 9 10 x 50"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

func TestMemoryIsReadInBytes(t *testing.T) {
	text := []byte("VmPeak:\t  900 kB\nVmHWM:\t   123 kB\nVmRSS:\t    99 kB\n")
	if got, err := parseKB(text, "VmHWM:"); err != nil || got != 123<<10 {
		t.Errorf("got %d, %v, want %d", got, err, 123<<10)
	}
	if _, err := parseKB(text, "Rss:"); err == nil {
		t.Error("missing key: got no error")
	}
}

func TestCPUClockAgreesWithProc(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
	}
	clock, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	stat, err := statTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if clock <= before {
		t.Errorf("the clock went from %v to %v", before, clock)
	}
	// Ticks are cut off; the runtime's other threads go on between the two readings.
	if diff := (stat - clock).Abs(); diff > 100*time.Millisecond {
		t.Errorf("clock says %v, /proc says %v", clock, stat)
	}
}

func TestPeakMemoryFollowsAndIsReset(t *testing.T) {
	pid := os.Getpid()
	if err := resetPeak(pid); err != nil {
		t.Skip("this system does not allow it: ", err)
	}
	before, err := peakBytes(pid)
	if err != nil {
		t.Fatal(err)
	}
	const size = 32 << 20
	block := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		block[i] = 1
	}
	after, err := peakBytes(pid)
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(block)
	if grown := after - before; grown < size*3/4 {
		t.Errorf("peak grew by %d bytes while %d were written", grown, size)
	}
}

func TestEndedProcessHasNoFigures(t *testing.T) {
	const nobody = 1 << 23 // above the greatest process id
	if _, err := cpuTime(nobody); err == nil {
		t.Error("CPU time: got no error")
	}
	if _, err := residentBytes(nobody); err == nil {
		t.Error("memory: got no error")
	}
	if _, err := openFiles(nobody); err == nil {
		t.Error("open files: got no error")
	}
}

func TestPinningHoldsForAllThreadsAndIsUndone(t *testing.T) {
	if runtime.NumCPU() == 1 {
		t.Skip("one CPU")
	}
	count := func() int {
		var set unix.CPUSet
		// A goroutine may run on any thread.
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Fatal(err)
		}
		return set.Count()
	}
	before := count()
	a, err := pinSelf()
	if err != nil {
		t.Skip("this system does not allow it: ", err)
	}
	for range 20 {
		done := make(chan int)
		go func() {
			runtime.LockOSThread()
			done <- count()
		}()
		if got := <-done; got != 1 {
			t.Errorf("a thread may use %d CPUs, want 1", got)
		}
	}
	if err := a.restore(); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != before {
		t.Errorf("afterwards %d CPUs, want %d", got, before)
	}
}
