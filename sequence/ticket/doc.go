// Package ticket gives the numbers of tables whose AUTO_INCREMENT column is a counter.
//
// Start at [Counter], one of [Tables]: [Counter.Replace] and [Counter.Insert] give a number from
// memory. [Import.CarryOut] makes a sequence of such a table. A [Table] has the SQL, and remembers
// nothing between two calls: [Table.ReadLayout] says whether it can be served, [Table.Lock] locks
// it, and [Locked.Reserve] takes numbers.
package ticket
