// Command bench measures what seqproxy costs. It starts a private MariaDB, HAProxy in TCP mode and
// seqproxy. It sends the same statements directly to the server and through both proxies, and
// prints medians as Markdown tables.
//
// Within every round all targets of a table are measured in turn, in rotated order. So a change of
// the machine's load affects all alike. A ratio is the median of the rounds' ratios. Every answer
// is checked, because a broken target is often a fast one. A wrong answer ends the target's part in
// that table and is printed instead of its figures.
//
// Start at run in main.go. The workloads are in plan.go, and their limits in limits.go. The
// exit status does not depend on the figures: a missed limit is a line in the last table.
package main
