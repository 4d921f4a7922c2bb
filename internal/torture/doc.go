// Package torture breaks a small installation at random and proves afterwards that no key was given twice: seqproxy processes as they are
// built, real database servers, and a network that is cut, slow, silent or in pieces (package network: toxiproxy), with clients that take keys in all the ways there are.
//
// The parts: estate.go says what the sequence servers are (group.go a primary with its replicas), world.go has all servers and processes, writers.go and kinds.go the clients, nemesis.go and
// faults.go what happens to them (faults_admin.go: what people do; faults_disk.go; faults_group.go: fail-overs), history.go what every client received and when. When all is healed the checks look at the history
// (check_*.go), and report.go prints one screen. run.go goes through that in order. A new fault is a function and a line in faults.go, a new way to take
// keys the same in kinds.go.
//
// Gaps are looked for in the whole run (accounts.go, ledger.go). Each sequence server writes down every change of a row, in its binary log (journal.go, binlog.go). Each change has to be one that
// somebody says to have made: a process, in its log on the level debug, a client that counts there itself, or a fault that restored a row. So every number that a row has passed was reserved by a
// process that logged the range before it used it; or passed over, where such a range may not begin lower (another server's numbers, a floor that was logged, the rest of a block); or given back; or lies where the row
// was set, for a reason that was logged with both ends (SETVAL, RESTART, DROP, plans, adoption, a row that had gone back). And each number that a client has is one that its proxy had reserved; what a process that ended in order says to have
// given, passed over, given back and left has to make what it reserved, and what clients received. The time of the faults is followed by one in which no proxy is killed (calmly), so that all say that.
//
// What is bounded only: of a reservation whose outcome nobody knows, and of the one at most that a killed process had asked for last of each sequence, how many numbers and above which is logged, and the change has to
// fit that. Which of the numbers that a killed process had were given nobody knows but clients: all others of its ranges are the gap that the crash explains. Within a process the numbers that it passed over are counted,
// not named. A row that is set may be set as high as the line says that tells why. Of a group by replication each node tells of its own changes; the nodes of a Galera cluster write down none, and gaps there are not looked for. A ticket table that counts by AUTO_INCREMENT has no row to follow (tickets.go): each of its
// numbers is somebody's, or there is no more of them than were asked for about that time without an answer, and one for each statement that a crash of the server may have undone.
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
package torture
