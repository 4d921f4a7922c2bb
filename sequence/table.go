package sequence

import (
	"math"
	"strings"
)

// createTable is the table as people already have it; nothing of ours is added to it.
const createTable = "CREATE TABLE IF NOT EXISTS %s (`name` varchar(50) NOT NULL, `id` bigint(20) unsigned NOT NULL DEFAULT '0', " +
	"PRIMARY KEY (`name`)) ENGINE=InnoDB"

// table holds the SQL of one sequence table.
type table struct {
	full    string // "`app`.`sequence`"
	options string // "`app`.`sequence_options`"
	proxies string // "`app`.`sequence_proxy`"
}

// row is one sequence as the table has it.
type row struct {
	name  string // as stored
	id    uint64 // the last number given; while the sequence is frozen, the highest that its column holds
	max   uint64 // the highest number that it may give
	exact uint64 // typed CACHE n, or 0
	entry        // noEntry if it has none
}

// position is the last number given, whether or not the sequence is frozen.
func (r *row) position() uint64 {
	if r.frozen > 0 {
		return r.saved
	}
	return r.id
}

func newTable(database, name string) table {
	return table{
		full:    quote(database) + "." + quote(name),
		options: quote(database) + "." + quote(name+optionsSuffix),
		proxies: quote(database) + "." + quote(name+proxySuffix),
	}
}

// Suffixes of the tables that stand beside the first one; the longest counts for how long its name may be.
const (
	optionsSuffix = "_options"
	proxySuffix   = "_proxy"
)

// maxIdentifier is the servers' limit for the name of a table, in characters:
// https://dev.mysql.com/doc/refman/8.4/en/identifier-length.html
const maxIdentifier = 64

// reserve takes numbers. LAST_INSERT_ID(expr) makes the server keep the new value for this session alone, so that it cannot be
// mixed up with another's.
func (t table) reserve() string {
	return "UPDATE " + t.full + " SET `id` = LAST_INSERT_ID(`id` + ?) WHERE `name` = ?"
}

// reserveByRule takes numbers that go by steps, or that end before their column does. The id becomes the last one of them, which is the
// first number after it (arguments anchor, anchor, anchor, anchor, step, step) and a width; and it does that only while it is
// below a bound. So nothing in it goes beyond 64 bits.
func (t table) reserveByRule() string {
	const id, number = "CAST(`id` AS UNSIGNED)", "CAST(? AS UNSIGNED)"
	return "UPDATE " + t.full + " SET `id` = LAST_INSERT_ID(IF(" + id + " < " + number + ", " + number + ", " +
		number + " + ((" + id + " - " + number + ") DIV " + number + " + 1) * " + number + ") + " + number + ") " +
		"WHERE `name` = ? AND " + id + " < " + number
}

// raise lifts a row that went back. Without the casts a signed column and a large number would be compared as DECIMAL.
func (t table) raise() string {
	return "UPDATE " + t.full + " SET `id` = GREATEST(CAST(`id` AS UNSIGNED), CAST(? AS UNSIGNED)) WHERE `name` = ?"
}

// giveBack lowers a row to the first argument if nobody has reserved since it was set to the third.
func (t table) giveBack() string {
	return "UPDATE " + t.full + " SET `id` = ? WHERE `name` = ? AND `id` = ?"
}

// rows selects name, id (as text, so that a negative one is seen) and options of all rows.
func (t table) rows(has shape) string {
	text := "SELECT s.`name`, CAST(s.`id` AS CHAR), " + selectEntry(has) + " FROM " + t.full + " AS s"
	if has == shapeNone {
		return text
	}
	return text + " LEFT JOIN " + t.options + " AS o ON o.`name` = s.`name`"
}

// one selects like rows the row that a name means.
func (t table) one(has shape) string {
	return t.rows(has) + " WHERE s.`name` = ?"
}

// quote makes an identifier of s.
func quote(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// columnMax is the highest number that a column type holds ("bigint(20) unsigned" as information_schema says it), or
// false if it is no integer.
func columnMax(columnType string) (highest uint64, ok bool) {
	word, rest, _ := strings.Cut(strings.ToLower(columnType), "(")
	if word == strings.ToLower(columnType) { // MySQL 8.0.19 and later: no display width
		word, rest, _ = strings.Cut(word, " ")
	}
	bits, ok := map[string]uint{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "integer": 32, "bigint": 64}[word]
	if !ok {
		return 0, false
	}
	highest = math.MaxUint64 >> (64 - bits)
	if !strings.Contains(rest, "unsigned") {
		highest >>= 1
	}
	return highest, true
}
