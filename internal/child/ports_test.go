package child

import (
	"slices"
	"testing"
)

// An outgoing connection may take a port of the system's range while a program that listens there
// is down.
func TestFreePortsAreThoseThatNoConnectionIsGiven(t *testing.T) {
	var all []int
	for range 20 {
		ports, err := FreePorts(5)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(ports)
		if len(ports) != 5 || len(slices.Compact(ports)) != 5 {
			t.Errorf("got %v, want five ports", ports)
		}
		all = append(all, ports...)
	}
	if low, high := slices.Min(all), slices.Max(all); low < 1024 || high >= 32768 {
		t.Errorf("got ports from %d to %d; connections are given those from 32768 on", low, high)
	}
}

// While a program is down, its port is nobody else's: not of this process, and not of another.
func TestAPortThatWasGivenIsNotGivenAgainSoon(t *testing.T) {
	ports, err := FreePorts(blockSize / 2)
	if err != nil {
		t.Fatal(err)
	}
	more, err := FreePorts(blockSize / 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range more {
		if slices.Contains(ports, port) {
			t.Errorf("port %d was given twice", port)
		}
	}
	block.mu.Lock()
	defer block.mu.Unlock()
	lease, first := block.lease, block.first
	defer func() { block.lease, block.first = lease, first }()
	if err := chooseBlock(); err != nil { // as another process
		t.Fatal(err)
	}
	defer block.lease.Close()
	if block.first > first-blockSize && block.first < first+blockSize {
		t.Errorf("two processes have the ports from %d and from %d", first, block.first)
	}
}
