// Package kill ends statements on servers, and sees which connections have ended that nobody reads.
//
// Start at Killer, which says KILL over connections of its own, and at Watcher, which tells of
// clients and servers that have hung up. Wish is what a client's KILL asks for.
package kill
