// Package ticket reads, locks and counts in a table whose AUTO_INCREMENT column is a counter.
//
// Start at [Table]: [Table.ReadLayout] says whether it can be served, [Table.Lock] locks it, and
// [Locked.Reserve] takes numbers. The package remembers nothing between two calls.
package ticket
