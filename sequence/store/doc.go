// Package store has the SQL of a sequence server's tables. It reads and writes their rows, takes
// numbers, and makes sure that what was taken is stored. It decides nothing: how an attempt to take
// numbers has ended is an [Outcome], and the package above has the remedy.
//
// Start from [Store], the rows of one server. Beside them [OptionTable] has the options of
// sequences, [LimitTable] how far each may go, [PlanTable] the members, and [ProxyTable] the
// proxies that may hold numbers. [Schema] makes these tables and checks them.
package store
