// Package torture breaks a small installation at random and proves afterwards that no key was given
// twice: seqproxy processes as they are built, real database servers, and a network that is cut,
// slow, silent or in pieces (package network: toxiproxy), with clients that take keys in all the
// ways there are.
//
// The parts: estate.go says what the sequence servers are (group.go a primary with its replicas),
// world.go has all servers and processes, writers.go and kinds.go the clients, nemesis.go and
// faults.go what happens to them (faults_admin.go: what people do; faults_disk.go; faults_group.go:
// fail-overs; faults_clock.go), history.go what every client received and when. When all is healed
// the checks look at the history (check_*.go), and report.go prints one screen. run.go goes through
// that in order. A new fault is a function and a line in faults.go, a new way to take keys the same
// in kinds.go.
//
// Each process counts its numbers, and says at its end in order what became of those that it
// reserved (check_counts.go). The counters have to add up, and to be what clients received. Of a
// process that was killed all is unknown that no client has: the numbers in its cache, mostly. The
// time of the faults is followed by one in which no proxy is killed (calm.go), so that each proxy
// says it.
//
// A group (pair, group) has its primary killed, cut off with some of the proxies, or replaced in
// order, after its replicas have missed something or not. Whoever takes over lacks numbers that
// were given (the report counts how often), and the old primary goes on giving some. What has
// strayed from the new primary is set up anew with a copy of that, though not before a proxy has
// claimed it: until then the windows that it has not heard of are known elsewhere only. Without the
// check of holder and ceiling (the fault ceiling-replica) each of the seeds that were tried finds a
// duplicate within seconds.
//
// The clocks of sequence servers jump by minutes to hours, forward and back, and right again some
// seconds later (faults_clock.go), whatever else happens: a server is killed meanwhile, a replica
// takes over, a sequence begins again, a change of servers is under way. libfaketime, which is
// preloaded into the servers, gives them a wall clock of their own; the fault makes sure that each
// tells the time to which it was set. No number depends on a clock, and no failure is explained by
// one that jumped. What depends on one is what a statement of an operator may meet: a change of
// servers that looks as if it had been left for hours may be undone by another proxy, and is asked
// for again. Nothing here takes the time of a server for that of the run. Where the library is
// missing no clock jumps, and the report says so. Nor do those of a Galera cluster, in whose logs
// is read when nodes took each other for dead, and of shards, which count nothing.
//
// Days are short: a time zone of the run alone, whose file its proxies read (days.go), has ten or
// more, and one in five times the day before comes again. So a counter of FORMAT ... RESET DAILY
// begins again whatever else happens: where clocks differ, while a server is away, and with a
// fail-over that loses the rows of a day.
//
// The clocks of proxies jump by a second, an hour or a day, also together with those of the
// servers, as on a machine that is set. libfaketime does not reach a Go program, which asks the
// kernel by itself. So the program is one with a clock that can be set (package planted), and keys
// show that it was. Only keys with a time depend on it. What else a proxy measures it measures by
// Go's monotonic clock; a time of day is in what it tells people, and in nothing that is compared
// or kept.
package torture
