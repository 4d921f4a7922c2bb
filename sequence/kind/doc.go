// Package kind makes keys of counters. It is pure: a counter in, a key out, and back.
//
// Start at Kind: keys that are numbers. The zero Kind is the plain one, whose key is the counter.
// No kind gives one key for two counters, so whoever gives each counter once gives each key once.
package kind
