package define

import (
	"strconv"
	"strings"

	"seqproxy/sequence/kind"
)

// CounterSuffix ends the names of rows whose sequences have a kind, and of no others.
const CounterSuffix = "#counter"

// CounterName returns the name of the row that counts for a sequence with a kind. Most servers
// ignore blanks at the end of a name, which they would not before the suffix.
func CounterName(name string) string { return strings.TrimRight(name, " ") + CounterSuffix }

// IsCounter reports whether a row counts for a sequence with a kind.
func IsCounter(stored string) bool {
	n := len(stored) - len(CounterSuffix)
	return n >= 0 && strings.EqualFold(stored[n:], CounterSuffix)
}

// StoredName returns the name of the row of a sequence.
func StoredName(name string, k kind.Kind) string {
	if k.IsPlain() {
		return name
	}
	return CounterName(name)
}

// ShownName returns the name of a row's sequence for people. The row of a period belongs to the
// sequence that counts in it.
func ShownName(stored string) string {
	if IsCounter(stored) {
		name, _ := PeriodOf(stored[:len(stored)-len(CounterSuffix)])
		return name
	}
	return stored
}

// WorkerMark precedes the number of a worker in the name of its sequence.
const WorkerMark = "#w"

// WorkerName returns the name of the sequence of a worker's ticks.
func WorkerName(base string, worker uint64) string {
	return base + WorkerMark + strconv.FormatUint(worker, 10)
}

// WorkerOf returns the sequence whose worker has its ticks under name.
func WorkerOf(name string) (base string, ok bool) {
	at := strings.LastIndex(name, WorkerMark)
	if at < 0 {
		return name, false
	}
	_, err := strconv.ParseUint(name[at+len(WorkerMark):], 10, 16)
	return name[:at], err == nil
}

// IsWorker reports whether a row counts the ticks of a worker.
func IsWorker(stored string) bool {
	_, ok := WorkerIn(stored)
	return ok
}

// WorkerIn returns the worker whose ticks a row counts. Of several members, one gives all ticks of
// a worker: the one at its number modulo their count. Blocks would span hours.
func WorkerIn(stored string) (worker uint64, ok bool) {
	at := strings.LastIndex(stored, WorkerMark)
	if at < 0 || !IsCounter(stored) {
		return 0, false
	}
	worker, err := strconv.ParseUint(ShownName(stored)[at+len(WorkerMark):], 10, 16)
	return worker, err == nil
}

// ScoredName returns the name under which the use of a row is counted.
func ScoredName(stored string) string {
	name := ShownName(stored)
	if IsCounter(stored) {
		name, _ = WorkerOf(name)
	}
	return name
}

// IsHidden reports whether a row counts for a sequence that has another row.
func IsHidden(stored string) bool { return IsWorker(stored) || IsPeriod(stored) }

// PeriodMark precedes a period in the name of its counter.
const PeriodMark = "@"

// PeriodName returns the name of the sequence that counts in a period.
func PeriodName(base string, k kind.Kind, p kind.Period) string {
	return base + PeriodMark + k.PeriodName(p)
}

// PeriodOf returns the sequence whose counter of a period has this name.
func PeriodOf(name string) (base string, ok bool) {
	at := strings.LastIndex(name, PeriodMark)
	if at < 1 || strings.Trim(name[at+1:], "0123456789") != "" {
		return name, false
	}
	switch len(name) - at - 1 {
	case 4, 6, 8:
		return name[:at], true
	}
	return name, false
}

// IsPeriod reports whether a row counts in one period of a sequence.
func IsPeriod(stored string) bool {
	if !IsCounter(stored) {
		return false
	}
	_, ok := PeriodOf(stored[:len(stored)-len(CounterSuffix)])
	return ok
}

// BaseRow returns the name of the row of the sequence that a row counts for.
func BaseRow(stored string) string {
	if IsPeriod(stored) {
		return CounterName(ShownName(stored))
	}
	return stored
}
