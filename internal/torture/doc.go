// Package torture breaks a small installation at random and proves afterwards that no key was given twice: seqproxy processes as they are
// built, real database servers, and a network that is cut, slow or silent, with clients that take keys in all the ways there are.
//
// The parts: estate.go says what the sequence servers are (group.go a primary with its replicas), world.go has all servers and processes, link.go the network between them, writers.go and kinds.go the clients, nemesis.go and
// faults.go what happens to them (faults_admin.go: what people do; faults_disk.go; faults_group.go: fail-overs), history.go what every client received and when. When all is healed the checks look at the history
// (check_*.go), and report.go prints one screen. run.go goes through that in order. A new fault is a function and a line in faults.go, a new way to take
// keys the same in kinds.go.
//
// Gaps are looked for in a time of their own behind that (accounts.go, ledger.go), in which servers are killed and connections cut, and answers swallowed, but no proxy is killed. On each
// sequence server every number between where its row stood and where it stands then was reserved by a process that logged it, lies in a reservation that was logged as one of unknown
// outcome, or is none that a reservation could begin at: another server's, below what its taker had got from another one, or in a rest of a block that is too short. And what each process reserved it
// gave to a client, gave back, passed over for a reason that it counts, or logged that it could not give it back. Not accounted for are: the time of the faults, since a proxy that is killed takes with it what
// it would have logged last, and a change of servers or a sequence that begins again sets rows elsewhere; within a process, which number was passed over (it counts how many, and why); and ticket tables that count by
// AUTO_INCREMENT, which have no row.
//
// A group (pair, group) has its primary killed, cut off with some of the proxies, or replaced in order, after its replicas have missed something or not. Whoever takes over lacks
// numbers that were given (the report counts how often), and the old primary goes on giving some. What has strayed from the new primary is set up anew with a copy of that, though
// not before a proxy has adopted it: until then the windows that it has not heard of are known elsewhere only. Without the check of holder and ceiling (seqproxy_fault_holder) each of
// the seeds that were tried finds a duplicate within seconds.
//
// Clocks do not jump here. No number depends on one: that keys do not come again rests on committed rows, and their order on the order in which a row moved. What a proxy measures it
// measures by Go's monotonic clock, which no jump moves. The time of a server is used for the versions of changes, which never fall behind the last one; for how long a sequence has been frozen, of which a time
// to come counts as over; for which proxies are told of as silent, which decides nothing but how long somebody waits for them; and for what people are told. What happens when these jump is scripted:
// TestClocksThatJumpBreakNoPromise, TestFrozenSequenceContinuesWhereItWas and TestClockThatGoesBackIsHarmless in package sequence. To have other processes' clocks jump would take a library that is preloaded into them,
// or a machine of their own.
//
// The network is a relay of our own, link.go: the weathers that are needed here. Package network has them, and more, by toxiproxy as a library, for the tests of other packages.
package torture
