// Package statefile keeps a few facts of a process on disk, each a key with a value, so that the
// next process knows them although this one was killed or lost its power. A directory belongs to
// one process at a time.
//
// The file is a log that is only added to: a line for each write, with a checksum. Only the last
// line can be incomplete, and nobody was told that it is on disk; everything else that does not add
// up is refused. When the log has grown it is written anew beside the old one and takes its place,
// so its size stays in proportion to what it keeps.
package statefile
