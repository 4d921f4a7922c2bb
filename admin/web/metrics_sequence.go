package web

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seqproxy/sequence"
)

// The metrics of sequences. A bounded number of sequences have their own. The rest are
// summed as [sequence.Others], without metrics that cannot be added up.
var (
	givenDesc    = desc("sequence", "numbers_given_total", "Numbers given, including those that a statement did not use.", "sequence")
	reservedDesc = desc("sequence", "numbers_reserved_total", "Numbers that were reserved, for certain or possibly: given, cached and unused ones.", "sequence")
	unusedDesc   = desc("sequence", "numbers_unused_total", "Reserved numbers that nobody gets, by reason. All but the returned ones are gaps.", "sequence", "reason")
	cachedDesc   = desc("sequence", "cached_numbers", "Numbers in memory, reserved and not given yet.", "sequence")
	sizeDesc     = desc("sequence", "cache_size", "Numbers that one reservation takes now. Absent for ORDER sequences.", "sequence")
	coverDesc    = desc("sequence", "cover_seconds", "How long keys last without a sequence server; +Inf at rate 0. Of SNOWFLAKE, the time that is reserved. None with ORDER.", "sequence")
	skewDesc     = desc("sequence", "order_skew_seconds", "How far this proxy's numbers may be out of order; add up all proxies. 0 for ORDER sequences; absent at rate 0.", "sequence")
	waitDesc     = desc("sequence", "wait_seconds", "Waiting times of callers that found no number in memory. For ORDER sequences every caller waits.", "sequence")
	unservedDesc = desc("sequence", "waits_failed_total", "Waits that ended without a number, as after allocate_timeout. Callers that left do not count.", "sequence")
	attemptsDesc = desc("sequence", "reservations_total", "Attempts to reserve numbers, by outcome.", "sequence", "result")
	usedDesc     = desc("sequence", "used_ratio", "Share of all numbers that is reserved, 0 to 1, as far as this proxy has seen. Absent with CYCLE.", "sequence")
	endDesc      = desc("sequence", "exhaustion_timestamp_seconds", "When the sequence ends at today's rate. Absent if that is far away.", "sequence")
	rewindsDesc  = desc("sequence", "rewinds_total", "How often the sequence's row has gone back.", "sequence")
	epochDesc    = desc("sequence", "epoch", "Changes when RESTART ... FORCE makes the sequence begin again.", "sequence")
	homeDesc     = desc("sequence", "order_home_up", "ORDER sequences only: 1 if the sequence's server can be used, in a group if it was last seen as the holder.", "sequence")
	workerDesc   = desc("sequence", "worker", "SNOWFLAKE only: the worker in use. Absent while no ticks are reserved.", "sequence")
	refusalsDesc = desc("sequence", "clock_refusals_total", "SNOWFLAKE and RESET only: keys that were refused because of a clock.", "sequence")
	stepsDesc    = desc("sequence", "clock_steps_total", "SNOWFLAKE only: times that the machine's clock was set by more than a second, or the machine slept.", "sequence")
	countDesc    = desc("", "sequences", "Sequences that this proxy has used or looked up.")

	serverUpDesc      = desc("sequence_server", "up", "1 if numbers can be reserved there, as far as the proxy knows.", "server")
	serverNodeDesc    = desc("sequence_server", "node_info", "Always 1; node is the address where numbers are reserved.", "server", "node")
	serverTimesDesc   = desc("sequence_server", "reservation_duration_seconds", "Duration of attempts to reserve numbers, by outcome.", "server", "result")
	serverRewindsDesc = desc("sequence_server", "rewinds_total", "How often a sequence's row has gone back there.", "server")
	planDesc          = desc("sequence", "plan_number", "Number of the plan in force; 0 without one. All proxies should have the same.")
	clockDesc         = desc("clock", "ahead_seconds", "How far the machine's clock is ahead of the sequence server's, last asked for a SNOWFLAKE or RESET key. Absent before.")
	stateDesc         = desc("state", "file_usable", "1 if state_dir can be written; with 0 nothing is reserved. Absent without state_dir.")
)

// SequenceCollector collects the metrics about sequences. It asks no server.
func SequenceCollector(s *sequence.Sequences) prometheus.Collector { return sequenceCollector{s} }

type sequenceCollector struct{ *sequence.Sequences }

// Describe implements [prometheus.Collector].
func (sequenceCollector) Describe(all chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		givenDesc, reservedDesc, unusedDesc, cachedDesc, sizeDesc, coverDesc, skewDesc, waitDesc, unservedDesc, attemptsDesc,
		usedDesc, endDesc, rewindsDesc, epochDesc, homeDesc, countDesc, serverUpDesc, serverNodeDesc, serverTimesDesc, serverRewindsDesc, planDesc, stateDesc,
		workerDesc, refusalsDesc, stepsDesc, clockDesc,
	} {
		all <- d
	}
}

// Collect implements [prometheus.Collector].
func (c sequenceCollector) Collect(all chan<- prometheus.Metric) {
	now := time.Now()
	for _, st := range c.BySequence() {
		collectSequence(all, &st, now)
	}
	all <- prometheus.MustNewConstMetric(countDesc, prometheus.GaugeValue, float64(c.Stats().Sequences))
	for _, st := range c.ServerStats() {
		server := label(st.Server)
		all <- prometheus.MustNewConstMetric(serverUpDesc, prometheus.GaugeValue, boolValue(st.Up), server)
		all <- prometheus.MustNewConstMetric(serverRewindsDesc, prometheus.CounterValue, float64(st.Rewinds), server)
		if st.Node != "" {
			all <- prometheus.MustNewConstMetric(serverNodeDesc, prometheus.GaugeValue, 1, server, label(st.Node))
		}
		for result := range st.Durations {
			if h := &st.Durations[result]; h.Count() > 0 || sequence.Result(result) == sequence.ReservedOK {
				all <- constHistogram(serverTimesDesc, h, server, sequence.Result(result).String())
			}
		}
	}
	all <- prometheus.MustNewConstMetric(planDesc, prometheus.GaugeValue, float64(c.PlanNumber()))
	if ahead, ok := c.ClockAhead(); ok {
		all <- prometheus.MustNewConstMetric(clockDesc, prometheus.GaugeValue, ahead.Seconds())
	}
	if failing, kept := c.StateFailing(); kept {
		all <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, boolValue(!failing))
	}
}

func collectSequence(all chan<- prometheus.Metric, st *sequence.SequenceStats, now time.Time) {
	name := label(st.Name)
	counter := func(d *prometheus.Desc, n uint64, more ...string) {
		all <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{name}, more...)...)
	}
	gauge := func(d *prometheus.Desc, v float64) {
		all <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
	}
	counter(givenDesc, st.Given)
	counter(reservedDesc, st.Reserved)
	for reason, n := range st.Unused {
		counter(unusedDesc, n, sequence.Unused(reason).String())
	}
	for result, n := range st.Attempts {
		counter(attemptsDesc, n, sequence.Result(result).String())
	}
	counter(rewindsDesc, st.Rewinds)
	counter(unservedDesc, st.Unserved)
	all <- prometheus.MustNewConstSummary(waitDesc, st.Waits, st.Waited.Seconds(), nil, name)
	gauge(cachedDesc, float64(st.Cached))
	if st.Name == sequence.Others {
		return
	}
	if !st.Cycle {
		gauge(usedDesc, st.Used)
	}
	gauge(epochDesc, float64(st.Epoch))
	if st.Kind.HasClock() || st.Kind.Resets() {
		counter(refusalsDesc, st.ClockRefusals)
	}
	if st.Kind.HasClock() {
		counter(stepsDesc, st.ClockSteps)
	}
	if len(st.Workers) > 0 {
		gauge(workerDesc, float64(st.Workers[0]))
	}
	if st.ToEnd != sequence.Never {
		gauge(endDesc, float64(now.Add(st.ToEnd).UnixMilli())/1e3)
	}
	if st.Skew != sequence.Never {
		gauge(skewDesc, st.Skew.Seconds())
	}
	if st.Order {
		gauge(homeDesc, boolValue(st.HomeUp))
		return
	}
	gauge(sizeDesc, float64(st.Size))
	gauge(coverDesc, seconds(st.CachedFor))
}
