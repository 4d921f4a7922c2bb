// Package kill ends statements on servers, and notices ended connections that no goroutine reads.
//
// Start at [Kills], which carries out the KILLs of one session, and at [Watch], which finds
// sessions whose client or server has hung up. A [Killer] sends KILL over connections of its own. A
// [Wish] is the content of a client's KILL, and [Doom] the reason why a session is being ended.
package kill
