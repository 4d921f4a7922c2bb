// Package torture breaks a small installation at random and proves afterwards that no key was given twice: seqproxy processes as they are
// built, real database servers, and a network that is cut, slow, silent or in pieces (package network: toxiproxy), with clients that take keys in all the ways there are.
//
// The parts: estate.go says what the sequence servers are (group.go a primary with its replicas), world.go has all servers and processes, writers.go and kinds.go the clients, nemesis.go and
// faults.go what happens to them (faults_admin.go: what people do; faults_disk.go; faults_group.go: fail-overs; faults_clock.go), history.go what every client received and when. When all is healed the checks look at the history
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
// not named. A row that is set may be set as high as the line says that tells why. Of a group by replication each node tells of its own changes; of a Galera cluster each tells of all changes, and all nodes have to tell the same (cluster.go). A ticket table that counts by AUTO_INCREMENT has no row to follow (tickets.go): each of its
// numbers is somebody's, or there is no more of them than were asked for about that time without an answer, and one for each statement that a crash of the server may have undone.
//
// A group (pair, group) has its primary killed, cut off with some of the proxies, or replaced in order, after its replicas have missed something or not. Whoever takes over lacks
// numbers that were given (the report counts how often), and the old primary goes on giving some. What has strayed from the new primary is set up anew with a copy of that, though
// not before a proxy has adopted it: until then the windows that it has not heard of are known elsewhere only. Without the check of holder and ceiling (the fault ceiling-replica) each of
// the seeds that were tried finds a duplicate within seconds.
//
// The clocks of sequence servers jump by minutes to hours, forward and back, and right again some seconds later (faults_clock.go), whatever else happens: a server is killed meanwhile, a replica takes over, a
// sequence begins again, a change of servers is under way. libfaketime, which is preloaded into the servers, gives them a wall clock of their own; the fault makes sure that each tells the time to which it was set. No number depends on
// a clock, and no failure is explained by one that jumped. What depends on one is what a statement of an operator may meet: a change of servers that looks as if it had been left for hours may be undone
// by another proxy, and is asked for again. Nothing here takes the time of a server for that of the run: what its binary log says of when a row moved is for people to read. Where the library is
// missing no clock jumps, and the report says so. Nor do those of a Galera cluster, in whose logs is read when nodes took each other for dead, and of shards, which count nothing.
//
// The clocks of proxies do not jump. What a proxy measures it measures by Go's monotonic clock, which no jump moves; a time of day is in what it tells people, in its log among that, and in nothing that is compared or kept.
// (libfaketime would not reach it either: it asks the kernel by itself.)
package torture
