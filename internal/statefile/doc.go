// Package statefile keeps a few facts of a process on disk as keys and values. The next process has
// them, even if this one was killed or lost its power. A directory belongs to one process at a
// time.
//
// The file is a log: each write adds a line with a checksum. Only the last line can be incomplete,
// and then its write has not returned. Any other damage is refused. When the log has grown, a new
// one replaces it, so its size stays in proportion to its contents.
//
// Start at [Open], and [File.Put], whose Write says when it is on disk.
package statefile
