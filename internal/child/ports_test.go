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
