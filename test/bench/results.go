package main

import (
	"math"
	"slices"
)

// result is one measurement, or why there is none.
type result struct {
	Workload  string  `json:"workload"`
	Contender string  `json:"contender"`
	Round     int     `json:"round"` // from 1
	Figures   figures `json:"figures,omitempty"`
	Error     string  `json:"error,omitempty"`
}

// results are all measurements of a run in their order.
type results []result

// failed returns why a contender was given up, or "".
func (r results) failed(workload, contender string) string {
	for _, one := range r {
		if one.Workload == workload && one.Contender == contender && one.Error != "" {
			return one.Error
		}
	}
	return ""
}

// measured says whether a workload has any result.
func (r results) measured(workload string) bool {
	return slices.ContainsFunc(r, func(one result) bool { return one.Workload == workload })
}

// byRound returns a figure by round.
func (r results) byRound(workload, contender string, m metric) map[int]float64 {
	values := map[int]float64{}
	for _, one := range r {
		if one.Workload != workload || one.Contender != contender {
			continue
		}
		if v, ok := one.Figures[m]; ok {
			values[one.Round] = v
		}
	}
	return values
}

// summary describes the rounds of one figure.
type summary struct {
	median, low, high float64
	rounds            int // 0: nothing was measured, and the rest is NaN
}

func (r results) summary(workload, contender string, m metric) summary {
	return summarize(r.byRound(workload, contender, m))
}

// ratio compares a figure of two contenders round by round.
func (r results) ratio(workload, contender, base string, m metric) summary {
	ours, theirs := r.byRound(workload, contender, m), r.byRound(workload, base, m)
	ratios := map[int]float64{}
	for round, v := range ours {
		if b, ok := theirs[round]; ok && b > 0 {
			ratios[round] = v / b
		}
	}
	return summarize(ratios)
}

func summarize(byRound map[int]float64) summary {
	values := make([]float64, 0, len(byRound))
	for _, v := range byRound {
		values = append(values, v)
	}
	if len(values) == 0 {
		return summary{median: math.NaN(), low: math.NaN(), high: math.NaN()}
	}
	slices.Sort(values)
	middle := len(values) / 2
	median := values[middle]
	if len(values)%2 == 0 {
		median = (values[middle-1] + values[middle]) / 2
	}
	return summary{median: median, low: values[0], high: values[len(values)-1], rounds: len(values)}
}
