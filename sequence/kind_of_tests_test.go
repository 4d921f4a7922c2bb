package sequence

import (
	"flag"
	"os"
	"testing"

	"seqproxy/sequence/kind"
)

// What reserves and gives numbers does not know of kinds. So with a clause in SEQPROXY_TEST_KIND the
// sequences that tests make are of that kind, and the tests see their counters. `make test-kind`
// runs them. Tests that take several numbers at once need a kind whose keys are one apart.
var kindOfTests = os.Getenv("SEQPROXY_TEST_KIND")

// Without -run the tests of a kind are those of numbers that must not come twice or out of order.
// The others of these count in the table themselves, choose numbers, or use what kinds refuse.
const (
	testsOfKinds = "FailOver|RepeatsNoNumber|RepeatNoNumber|DoNotRepeat|DoesNotRepeat|NeverRepeat|GivenBack|KilledBetween|ManyC|CountsInBlocks|IsOrdered"
	notOfKinds   = "CompletionType|RowThatVanished|MadeAbove|ORDERSequence|Linearizable|AddedAndRemoved|SomebodyChose|PassedOver"
)

// chooseTestsOfKind runs those where nothing else is asked for.
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

// triedRow is the name of the row of a sequence that a test makes.
func triedRow(name string) string {
	if kindOfTests == "" || isCounter(name) {
		return name
	}
	return counterName(name)
}

// triedCounter is the counter of a key that a sequence of a test gave.
func triedCounter(t testing.TB, s *Sequences, name string, key uint64) uint64 {
	t.Helper()
	if kindOfTests == "" {
		return key
	}
	counter, _, ok := triedKind(t).Counter(key)
	if !ok {
		t.Fatalf("%s: %d is no key of kind %s", name, key, kindOfTests)
	}
	return counter
}
