// Package torture breaks a small installation at random and proves afterwards that no key was given
// twice. The installation has seqproxy processes as they are built, real database servers, and a
// network that is cut, slow, silent or in pieces (package network: toxiproxy). Its clients take
// keys in all the ways there are.
//
// The parts: estate.go describes the sequence servers (group.go a primary with its replicas),
// world.go has all servers and processes, writers.go and kinds.go the clients. nemesis.go and
// faults.go are what happens to them (faults_admin.go: what people do; faults_disk.go;
// faults_group.go: fail-overs; faults_clock.go), and history.go is what every client received
// and when. After the faults the checks read the history (check_*.go), and report.go prints one
// screen. Start at [Run], which goes through that in order. A new fault is a function and a line in
// faults.go, a new way to take keys the same in kinds.go.
//
// Each process counts its numbers, and at its end in order logs what happened to those that it
// reserved (check_counts.go). The counters have to add up, and to agree with what clients
// received. For a killed process the numbers that no client has are unknown: mostly those in its
// cache. After the faults comes a time in which no proxy is killed (calm.go), so that each proxy
// logs its counters.
//
// A group (pair, group) has its primary killed, cut off with some of the proxies, or replaced in
// order, sometimes after its replicas have missed something. The new primary then lacks numbers
// that were given (the report counts how often), and the old primary goes on giving some. A node
// that has strayed from the new primary is set up anew with a copy of it, but only after a proxy
// has made it the holder: until then the windows that it has not received are known only
// elsewhere. Without the check of holder and ceiling (the fault ceiling-replica) each of the
// seeds that were tried finds a duplicate within seconds.
//
// The clocks of sequence servers jump by minutes to hours, forward and back, and are set right
// some seconds later (faults_clock.go), whatever else happens: a server is killed, a replica
// takes over, a sequence begins again, a change of servers is under way. libfaketime, which is
// preloaded into the servers, gives them a wall clock of their own; the fault checks that each
// shows the time to which it was set. No number depends on a clock, and a jump excuses no
// failure. Only the answer to an operator's statement may depend on one: a change of servers that
// seems to have been abandoned for hours may be undone by another proxy, and is asked for again.
// The run never takes the time from a server. Without the library no clock jumps, and the report
// says so. The clocks of a Galera cluster do not jump either, because its logs show when nodes
// took each other for dead, nor those of shards, which count nothing.
//
// Days are short: a time zone of the run alone, whose file its proxies read (days.go), has ten or
// more, and one in five times the day before comes again. So a counter of FORMAT ... RESET DAILY
// begins again whatever else happens: where clocks differ, while a server is away, and with a
// fail-over that loses the rows of a day.
//
// The clocks of proxies jump by a second, an hour or a day, also together with those of the
// servers, as on a machine whose clock is set. libfaketime does not work for a Go program, which
// asks the kernel directly. So the program is a build whose clock can be set (package planted),
// and keys show that it was. Only keys with a time depend on it. All other measurements of a
// proxy use Go's monotonic clock; a time of day is in what it shows people, and in nothing that
// it compares or keeps.
package torture
