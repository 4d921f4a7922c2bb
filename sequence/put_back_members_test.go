package sequence

import "testing"

// Numbers at the end of a block of one server are not put back in front of the next block, which is another server's.
func TestTheEndOfABlockIsNotPutBackBeforeTheBlockOfAnotherServer(t *testing.T) {
	f := newFleet(t, 2)
	a, b := f.open(t, blocks(10), steadySize(10)), f.open(t, blocks(10), steadySize(10))
	createOn(t, a, "photos")
	var book ledger
	for range 12 {
		block, err := a.TakeBlock(t.Context(), []byte("photos"), 10)
		if err != nil {
			t.Fatal(err)
		}
		settled(t, a, "photos") // the next block is in memory
		used := uint64(10)
		if a.PutBack(block, 5) {
			used = 5
		}
		book.add(t, "a's rows", block.First, used)
		for range 25 {
			book.add(t, "a", mustTake(t, a, "photos", 1), 1)
			book.add(t, "b", mustTake(t, b, "photos", 1), 1)
		}
	}
}
