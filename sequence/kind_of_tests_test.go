package sequence_test

import (
	"flag"
	"os"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
)

// Reservations do not know of kinds. So with a clause in SEQPROXY_TEST_KIND the sequences that
// tests make are of that kind, and the tests see their counters. `make test-kind` runs them. Kinds
// whose keys are not one apart give several numbers one by one.
var kindOfTests = os.Getenv("SEQPROXY_TEST_KIND")

// Without -run the tests of a kind are those of numbers that must not repeat or come out of order.
// The others of these count in the table themselves, choose numbers, or use what kinds refuse.
const (
	testsOfKinds = "FailOver|RepeatsNoNumber|DoesNotRepeat|NeverRepeat|GivenBack|KilledBetween|ManyC|CountsInBlocks|IsOrdered"
	notOfKinds   = "CompletionType|RowThatVanished|MadeAbove|ORDERSequence|Linearizable|AddedAndRemoved|SomebodyChose|PassedOver|Snowflakes|Worker|IntColumn"
)

// chooseTestsOfKind selects those unless -run selects others.
func chooseTestsOfKind() {
	if kindOfTests == "" {
		return
	}
	for name, value := range map[string]string{"test.run": testsOfKinds, "test.skip": notOfKinds} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
}

// triedKind is the kind in kindOfTests.
func triedKind(t testing.TB) kind.Kind {
	t.Helper()
	k, err := kind.Parse(kindOfTests)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// triedRow returns the name of the row of a sequence that a test makes.
func triedRow(name string) string {
	if kindOfTests == "" || define.IsCounter(name) {
		return name
	}
	return define.CounterName(name)
}

// triedCounter returns the counter of a key that a sequence of a test gave. For a text TakeRun
// returns it.
func triedCounter(t testing.TB, s *sequence.Sequences, name string, key uint64) uint64 {
	t.Helper()
	if kindOfTests == "" || triedKind(t).IsText() {
		return key
	}
	counter, _, ok := triedKind(t).Counter(key)
	if !ok {
		t.Fatalf("%s: %d is no key of kind %s", name, key, kindOfTests)
	}
	return counter
}

// takesSeveral reports whether several numbers can be taken at once.
func takesSeveral(t testing.TB) bool {
	t.Helper()
	return kindOfTests == "" || triedKind(t).Steady()
}

// oneByOne takes n numbers that have to be consecutive.
func oneByOne(t testing.TB, s *sequence.Sequences, name string, n uint64) (first uint64) {
	t.Helper()
	for i := range n {
		one := mustTake(t, s, name, 1)
		if i == 0 {
			first = one
		}
		if one != first+i {
			t.Fatalf("%s: behind %d numbers from %d on comes %d: want them in a row", name, i, first, one)
		}
	}
	return first
}
