// Package follow hears what other processes change, and has it obeyed here.
//
// What CREATE and ALTER SEQUENCE say has a version on each server. Start at [Follower]:
// [Follower.Run] asks each member for the last one some times a second, has this process obey what
// changed, and says so in its entry among the proxies, which is its sign of life, too. A restart
// that goes down waits for that. hear.go is what is asked of one member.
//
// What is in memory here it sees as [Caches], and who has made it as an [Owner].
package follow
