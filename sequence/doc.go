// Package sequence gives out unique rising numbers by name.
//
// The numbers of a sequence are reserved in bulk, a segment at a time, from one row of the MySQL
// table `sequence` (name, id), and then handed out from memory. Start at [Sequences]: [New] makes
// it without any I/O, [Sequences.Take] hands out numbers, [Sequences.Close] returns what was not
// used.
//
// The package is made of parts, each with one reason to change. Package segment is arithmetic
// without lock or I/O. A sequence is what is known of one here: package cache has its numbers in
// memory, clocked and periods make keys by the time. Package members has the servers of the plan in
// force be one, and package agree has them agree on definitions. Package member reserves on one of
// them, and keeps numbers from coming twice. Package store has the SQL of its tables, and package
// steps that of a change of their set. Package link has its connections and their checks, package
// ticket the tables of other shapes. What is below calls nothing above: it returns an outcome, or
// raises a number that the part above compares.
//
// What CREATE and ALTER SEQUENCE say stands in a table beside the first one (store.OptionTable).
// Each change there has a version. Package follow has this process hear of it, obey it (follow.go,
// cache/revise.go) and say so in its entry among the proxies, which a restart that goes down waits
// for (restart.go).
//
// Beyond that the files go together by their names. Several servers divide the numbers by
// segment.Share. plan*.go are how the set of them is changed. Packages group and limit are a server
// that is a group. order_change.go makes an ORDER sequence of one (package cache gives its
// numbers). Package floor is what outlives the process.
//
// A lock that stands further left is taken first: Sequences.planning, Cache.Reserving,
// Follower.Lock, Follower.obeying, members.Members.Changing, Sequences.mu, Cache.mu, Notices.mu.
// One that is held while a server is asked is an await.Lock: a caller that waits for it gives up
// with its context. Others guard the fields of one type for a few lines.
//
// What a crash loses is the segment in memory (a gap); what it never makes is a duplicate, because
// a segment is committed before its first number leaves.
package sequence
