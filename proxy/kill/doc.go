// Package kill ends statements on servers.
//
// Start at [Kills], which carries out the KILLs of one session. A [Killer] sends KILL over
// connections of its own. A [Wish] is the content of a client's KILL, and [Doom] the reason why a
// session is being ended.
package kill
