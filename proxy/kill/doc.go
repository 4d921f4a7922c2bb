// Package kill ends statements on servers, and sees which connections have ended that nobody reads.
//
// Start at Kills, which carries out the KILLs that one session gives, and at Watch, which tells
// sessions that a client or server has hung up. A Killer says KILL over connections of its own.
// Wish is what a client's KILL asks for, and Doom why a session is being ended.
package kill
