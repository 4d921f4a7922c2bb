package backend

import (
	"sync"
	"testing"
)

func TestCodesAreBounded(t *testing.T) {
	var c codeCounts
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for code := range uint16(maxCodes + 10) {
				for range 100 {
					c.add(code + 1000)
				}
			}
		})
	}
	wg.Wait()
	counts := c.read()
	if len(counts) != maxCodes+1 {
		t.Fatalf("got %d codes, want %d and the others", len(counts), maxCodes)
	}
	for i, n := range counts[:maxCodes] {
		if n.Code == OtherCodes || i > 0 && n.Code <= counts[i-1].Code || n.N != 400 {
			t.Errorf("got %+v as number %d, want 400 of a code, and codes that rise", n, i)
		}
	}
	if got := counts[maxCodes]; got != (CodeCount{OtherCodes, 4000}) {
		t.Errorf("the others: got %+v, want 4000", got)
	}
}
