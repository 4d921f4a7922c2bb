// Command bench measures what seqproxy costs: it starts a private MariaDB, HAProxy in TCP mode and
// seqproxy, sends the same statements to the server itself ("direct") and through both proxies, and
// prints medians as Markdown tables.
//
// All targets of a table are measured in turn within every round, in rotated order, so that a
// change of the machine's load hits them alike; a ratio is the median of the ratios of the single
// rounds. Every answer is checked, because a broken target is often a fast one: a wrong answer ends
// the target's part in that table and is printed instead of its figures.
//
// Start reading at run in main.go; the workloads are listed in plan.go, what they must reach in
// limits.go. It measures and never judges by its exit status: a missed limit is a line in the last
// table.
package main
