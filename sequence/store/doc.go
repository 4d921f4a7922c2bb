// Package store has the SQL of a sequence server's tables. It reads and writes rows, takes numbers,
// and verifies that they are stored. It decides nothing: an attempt to take numbers ends with an
// [Outcome], and the package above has the remedy. Beside its row, a reservation reads `_member`,
// which changes of members alone write, and in a group `_limit` and `_holder`, which windows and
// take-overs write.
//
// Start at [Store], the rows of one server. The other tables are [OptionTable], the options of
// sequences; [LimitTable], how far each may go; [PlanTable], the members; and [ProxyTable], the
// proxies that may hold numbers. [Schema] makes these tables and checks them.
package store
