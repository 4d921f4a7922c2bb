// Package statefile keeps a few facts of a process on disk as keys and values. The next process
// knows them, even if this one was killed or lost its power. A directory belongs to one process at
// a time.
//
// The file is a log to which lines are added: one for each write, with a checksum. Only the last
// line can be incomplete, and nobody was told that it is on disk. Any other damage is refused. When
// the log has grown, a new one is written beside it and replaces it. So its size stays in
// proportion to its contents.
package statefile
