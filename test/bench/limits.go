package main

import "slices"

// limit is a figure that seqproxy must reach, and a better one that it should reach.
type limit struct {
	workload  string
	figure    string // for the table
	contender string
	metric    metric
	against   string // divide the figure by this contender's; "" for the figure itself
	atLeast   bool   // greater is better
	must, aim float64
}

// limits hold for every release. The CPU ratios count on one CPU, where they are steady.
//
// A growth of the resident memory by less than half a MB counts as none: that is a few pages of
// buffers and of the runtime.
var limits = []limit{
	{workload: "select1_c16pin", figure: "CPU vs HAProxy", contender: seqproxy, metric: cpuPerOp, against: haproxy, must: 1.35, aim: 1.20},
	{workload: "point_text_c16pin", figure: "CPU vs HAProxy", contender: seqproxy, metric: cpuPerOp, against: haproxy, must: 1.35, aim: 1.20},
	{workload: "point_prepared_c16pin", figure: "CPU vs HAProxy", contender: seqproxy, metric: cpuPerOp, against: haproxy, must: 1.35, aim: 1.20},
	{workload: "pipeline_c4pin", figure: "CPU vs HAProxy", contender: seqproxy, metric: cpuPerOp, against: haproxy, must: 1.5, aim: 1.1},
	{workload: "connect_c8pin", figure: "CPU vs HAProxy", contender: seqproxy, metric: cpuPerOp, against: haproxy, must: 1.8, aim: 1.3},
	{workload: "bigresult", figure: "MB/s vs HAProxy", contender: seqproxy, metric: mbPerSecond, against: haproxy, atLeast: true, must: 0.90, aim: 1.0},
	{workload: "bigresult", figure: "RSS growth, MB", contender: seqproxy, metric: growthMB, must: 2, aim: 0.5},
	{workload: "bigslow", figure: "RSS growth, MB", contender: seqproxy, metric: growthMB, must: 2, aim: 0.5},
	{workload: "rows1m", figure: "RSS growth, MB", contender: seqproxy, metric: growthMB, must: 10, aim: 0.5},
	{workload: "idle", figure: "RSS per session, KB", contender: seqproxy, metric: kbPerSession, must: 16, aim: 10},
	{workload: "nextval_c16", figure: "ops/s vs MariaDB's own NEXTVAL", contender: nextvalSeqproxy, metric: opsPerSecond, against: nextvalMariaDB, atLeast: true, must: 1.0, aim: 1.2},
	{workload: "nextval_c16", figure: "ops/s vs the UPDATE idiom", contender: nextvalSeqproxy, metric: opsPerSecond, against: nextvalUpdate, atLeast: true, must: 4, aim: 6},
	{workload: "kinds_c16pin", figure: "CPU of BIT_REVERSED vs a plain key", contender: "BIT_REVERSED", metric: cpuPerOp, against: plainKind, must: 1.10, aim: 1.05},
	{workload: "kinds_c16pin", figure: "CPU of ROTATE vs a plain key", contender: "ROTATE 1 DIGITS 18", metric: cpuPerOp, against: plainKind, must: 1.10, aim: 1.05},
	{workload: "kinds_c16pin", figure: "CPU of SHARD BITS vs a plain key", contender: "SHARD BITS 5", metric: cpuPerOp, against: plainKind, must: 1.10, aim: 1.05},
	{workload: "kinds_c16pin", figure: "CPU of SNOWFLAKE vs a plain key", contender: "SNOWFLAKE", metric: cpuPerOp, against: plainKind, must: 1.15, aim: 1.10},
	{workload: "ordered_c64", figure: "ops/s vs the UPDATE idiom", contender: orderedSeqproxy, metric: opsPerSecond, against: nextvalUpdate, atLeast: true, must: 5, aim: 8},
	{workload: "insert_c16pin", figure: "ops/s with NEXTVAL vs with a literal", contender: insertSeqproxy, metric: opsPerSecond, against: literalSeqproxy, atLeast: true, must: 0.9, aim: 1.0},
	{workload: "insert_c16pin", figure: "ops/s with a key filled in vs with a literal", contender: filledSeqproxy, metric: opsPerSecond, against: literalSeqproxy, atLeast: true, must: 0.9, aim: 1.0},
	{workload: "insert_prepared_c16pin", figure: "ops/s with NEXTVAL vs with a literal", contender: insertSeqproxy, metric: opsPerSecond, against: literalSeqproxy, atLeast: true, must: 0.9, aim: 1.0},
	{workload: "insert_prepared_c16pin", figure: "ops/s with a key filled in vs with a literal", contender: filledSeqproxy, metric: opsPerSecond, against: literalSeqproxy, atLeast: true, must: 0.9, aim: 1.0},
}

// verdict is the outcome for a limit.
type verdict string

const (
	aimReached  verdict = "aim"
	mustReached verdict = "must"
	missed      verdict = "**missed**"
	notMeasured verdict = "not measured"
)

// of returns a contender's figure.
func (l limit) of(r results, contender string) summary {
	if l.against != "" {
		return r.ratio(l.workload, contender, l.against, l.metric)
	}
	return r.summary(l.workload, contender, l.metric)
}

// judge compares the median of the rounds with the limit.
func (l limit) judge(r results) (summary, verdict) {
	s := l.of(r, l.contender)
	reached := func(bound float64) bool {
		if l.atLeast {
			return s.median >= bound
		}
		return s.median <= bound
	}
	switch {
	case r.failed(l.workload, l.contender) != "":
		return s, missed // wrong answers make a target fast
	case s.rounds == 0:
		return s, notMeasured
	case reached(l.aim):
		return s, aimReached
	case reached(l.must):
		return s, mustReached
	}
	return s, missed
}

// limitsOf returns the limits for the workloads of a run.
func limitsOf(list []workload) []limit {
	var chosen []limit
	for _, l := range limits {
		if slices.ContainsFunc(list, func(w workload) bool { return w.name == l.workload }) {
			chosen = append(chosen, l)
		}
	}
	return chosen
}
