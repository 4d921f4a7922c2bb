// Package kind makes keys of counters. It is pure: a counter in, a key out, and back.
//
// Start at [Kind]. The zero Kind is the plain one, whose key is the counter. No kind makes one key
// of two counters, so unique counters give unique keys.
package kind
