package store

import (
	"fmt"
	"strconv"

	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
)

// CreateTable makes the table of the sequences as people already have it. Nothing is added to it.
const CreateTable = "CREATE TABLE IF NOT EXISTS %s (`name` varchar(50) NOT NULL, `id` bigint(20) unsigned NOT NULL DEFAULT '0', " +
	"PRIMARY KEY (`name`)) ENGINE=InnoDB"

// Table holds the SQL of one sequence table.
type Table struct {
	Sequence string // "`app`.`sequence`"
	Options  string // "`app`.`sequence_options`"
	Version  string // "`app`.`sequence_version`"
	Proxies  string // "`app`.`sequence_proxy`"
	Holder   string // "`app`.`sequence_holder`"
	Limit    string // "`app`.`sequence_limit`"
	// of changes of members
	Member    string // "`app`.`sequence_member`"
	Plan      string // "`app`.`sequence_plan`"
	PlanStart string // "`app`.`sequence_plan_start`"
}

// All returns the names of all tables.
func (t *Table) All() []string {
	return []string{t.Sequence, t.Options, t.Version, t.Proxies, t.Holder, t.Limit, t.Member, t.Plan, t.PlanStart}
}

// Row is one sequence as the table has it.
type Row struct {
	Name string // as stored
	// the last number given; if the sequence is frozen, the highest that its column holds
	ID    uint64
	Max   uint64        // the highest number that it may give
	Exact uint64        // typed CACHE n, or 0
	Plan  uint64        // the plan that the server obeyed at the read
	Share segment.Share // the server's share, as this process believes
	Entry               // NoEntry if it has none

	// This process was registered at the read. Else numbers that it has just reserved may be given
	// by others, too.
	registered bool

	Frozen   bool   // by a change of members
	before   uint64 // its id before the freeze
	WasOrder bool   // it was an ORDER sequence before the Alteration that made it
}

// Position is the last number given, frozen or not.
func (r *Row) Position() uint64 {
	if r.Frozen {
		return r.before
	}
	return r.ID
}

func NewTable(database, name string) Table {
	named := func(suffix string) string { return define.Quote(database) + "." + define.Quote(name+suffix) }
	return Table{
		Sequence: named(""), Options: named(OptionsSuffix), Version: named(versionSuffix), Proxies: named(proxySuffix), Holder: named(holderSuffix), Limit: named(limitSuffix),
		Member: named(memberSuffix), Plan: named(planSuffix), PlanStart: named(PlanStartSuffix),
	}
}

// Suffixes of the tables' names. The longest bounds the length of the first table's name.
const (
	OptionsSuffix = "_options"
	versionSuffix = "_version"
	proxySuffix   = "_proxy"
)

// MaxIdentifier is the servers' limit for the name of a table, in characters:
// https://dev.mysql.com/doc/refman/8.4/en/identifier-length.html
const MaxIdentifier = 64

// taking returns the frame of a statement that takes numbers: the text before the new value of the
// id, the id's name in it, and the text behind. With a plan, the statement changes nothing on a
// server that obeys another one (arguments plan and member id, before all others).
func (t Table) taking(planned bool) (head, id, tail string) {
	if !planned {
		return "UPDATE " + t.Sequence + " SET `id` = LAST_INSERT_ID(", "`id`", ") WHERE `name` = ?"
	}
	return "UPDATE " + t.Sequence + " AS s JOIN " + t.Member + " AS m ON m.`one` = 1 AND m.`plan` = ? AND m.`id` = ? SET s.`id` = LAST_INSERT_ID(", "s.`id`",
		") WHERE s.`name` = ?"
}

// reserve takes numbers. LAST_INSERT_ID(expr) makes the server keep the new value for this session
// alone.
func (t Table) reserve(planned bool) string {
	head, id, tail := t.taking(planned)
	return head + id + " + ?" + tail
}

// ReserveByRule takes numbers in steps, or numbers that end before their column does. The id
// becomes the last of them: the first number after it (arguments anchor, anchor, anchor, anchor,
// step, step), plus a width. It does so only while the id is below a bound, so nothing exceeds 64
// bits.
func (t Table) ReserveByRule(planned bool) string {
	const number = "CAST(? AS UNSIGNED)"
	head, id, tail := t.taking(planned)
	id = "CAST(" + id + " AS UNSIGNED)"
	return head + "IF(" + id + " < " + number + ", " + number + ", " +
		number + " + ((" + id + " - " + number + ") DIV " + number + " + 1) * " + number + ") + " + number +
		tail + " AND " + id + " < " + number
}

// reserveInSteps is ReserveByRule for members that divide by steps: it takes nothing from a row
// whose id is not of the member's residue (arguments members, residue, behind all others).
func (t Table) reserveInSteps() string {
	return t.ReserveByRule(true) + " AND MOD(CAST(s.`id` AS UNSIGNED), ?) = ?"
}

// reserveInBlocks takes n numbers above a floor out of the blocks of a member, while the id is
// below a bound.
func (t Table) reserveInBlocks(h segment.Share, floor, n uint64) string {
	head, id, tail := t.taking(true)
	g := fmt.Sprintf("GREATEST(CAST(%s AS UNSIGNED), CAST(%d AS UNSIGNED))", id, floor)
	return head + h.ReserveBlocks(g, n) + tail + " AND CAST(" + id + " AS UNSIGNED) < CAST(? AS UNSIGNED)"
}

// raise sets a row that is below the first argument to the second, and moves any other on by the
// third while it is below the fifth. The fourth is its name. Without the casts a signed column and
// a large number would be compared as DECIMAL.
func (t Table) raise() string {
	const id = "CAST(`id` AS UNSIGNED)"
	return "UPDATE " + t.Sequence + " SET `id` = LAST_INSERT_ID(IF(" + id + " < CAST(? AS UNSIGNED), CAST(? AS UNSIGNED), " + id +
		" + CAST(? AS UNSIGNED))) WHERE `name` = ? AND " + id + " < CAST(? AS UNSIGNED)"
}

// obeyed is an expression for the number of the plan that the server obeys; 0: none.
func (t Table) obeyed() string {
	return "IFNULL((SELECT m.`plan` FROM " + t.Member + " AS m WHERE m.`one` = 1), 0)"
}

// underPlan makes an UPDATE of one row change nothing while the server obeys another plan; 0: any.
func (t Table) underPlan(number uint64) string {
	return " AND " + t.obeyed() + " = " + strconv.FormatUint(number, 10)
}

// giveBack lowers a row to the first argument if nothing was reserved since it was set to the
// third, under the same plan. With a plan, the arguments of taking come first.
func (t Table) giveBack(planned bool) string {
	if planned {
		return "UPDATE " + t.Sequence + " AS s JOIN " + t.Member + " AS m ON m.`one` = 1 AND m.`plan` = ? AND m.`id` = ? SET s.`id` = ? WHERE s.`name` = ? AND s.`id` = ?"
	}
	return "UPDATE " + t.Sequence + " SET `id` = ? WHERE `name` = ? AND `id` = ?" + t.underPlan(0)
}

// rows selects from all rows: name, id (as text, which shows a negative one), whether a proxy is
// registered (its id may be empty), the plan in force, and the options.
func (t Table) rows(proxy string) string {
	registered := "0, "
	if proxy != "" {
		registered = "EXISTS (SELECT 1 FROM " + t.Proxies + " AS r WHERE r.`id` = '" + proxy + "'), "
	}
	return "SELECT s.`name`, CAST(s.`id` AS CHAR), " + registered + t.obeyed() + ", " + EntryOf +
		" FROM " + t.Sequence + " AS s LEFT JOIN " + t.Options + " AS o ON o.`name` = s.`name`"
}

// stands selects what a [Stand] has.
func (t Table) stands() string {
	return "SELECT s.`name`, CAST(s.`id` AS CHAR), " + t.obeyed() + ", IFNULL(o.`epoch`, 0), IFNULL(o.`cycle`, 0) FROM " +
		t.Sequence + " AS s LEFT JOIN " + t.Options + " AS o ON o.`name` = s.`name`"
}

// one selects the row that a name means, as rows does.
func (t Table) one(proxy string) string { return t.rows(proxy) + " WHERE s.`name` = ?" }

// either selects the row of a sequence whose kind is unknown. A plain row does not count beside
// that of a counter, nor after a sequence with a kind was dropped: it was made by hand (arguments
// CounterName, name, CounterName).
func (t Table) either(proxy string) string {
	return t.rows(proxy) + " WHERE s.`name` = ? OR s.`name` = ? AND NOT EXISTS (SELECT 1 FROM " + t.Options + " AS k WHERE k.`name` = ? AND k.`kind` <> '') ORDER BY CHAR_LENGTH(s.`name`) DESC LIMIT 1"
}
