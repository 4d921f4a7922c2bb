package admin

import (
	"runtime"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement/ddl"
)

var helpColumns = []protocol.Column{
	word("statement", 160),
	word("right", 16),
	word("meaning", 160),
}

// The users of a statement.
const (
	byMonitors = "monitor_users"
	byAdmins   = "admin_users"
	byOwners   = "the sequence" // users who may use the sequence
)

// sequenceHelp explains the statements with words that MariaDB also has. docs/sequences.md says
// more.
var sequenceHelp = [][3]string{
	{"SHOW SEQUENCES [LIKE 'pattern']", byOwners, "the sequences: what is in memory, for how long it lasts, and how much is used"},
	{"SHOW CREATE SEQUENCE name", byOwners, "the statement that makes such a sequence"},
	{"SELECT SEQUENCE_DECODE('name', key)", byOwners, "the counter, the time and the period that a key was made of, where the sequence has a kind of keys"},
	{"CREATE [OR REPLACE] SEQUENCE [IF NOT EXISTS] name [option ...]", byAdmins, "makes a sequence"},
	{"ALTER SEQUENCE [IF EXISTS] name option ...", byAdmins, "changes options, on all proxies"},
	{"DROP SEQUENCE [IF EXISTS] name [, name ...]", byAdmins, "drops sequences; one that is made again goes on above its numbers"},
	{"FLUSH SEQUENCES [name, ...]", byAdmins, "gives up the numbers in memory"},
	{"CHECK SEQUENCE name [, name ...]", byAdmins, "compares sequences with the keys of the columns that own them, on every shard"},
	{"REPAIR SEQUENCE name", byAdmins, "the same, and raises it if it is behind"},
}

// Statements lists all statements to the proxy: who may use each, and what it does. Statements that
// change something come last.
func Statements() (rows [][3]string) {
	all := ddl.ProxyStatements()
	list := func(show bool) {
		right := byAdmins
		if show {
			right = byMonitors
		}
		for _, p := range all {
			if p.Show == show {
				rows = append(rows, [3]string{p.Text, right, p.Help})
			}
		}
	}
	list(true)
	rows = append(rows, sequenceHelp...)
	list(false)
	return append(rows,
		[3]string{"EXPLAIN FORMAT=ROUTE statement", byAdmins, "what would become of a statement where clients connect, without doing it"},
		[3]string{"KILL [CONNECTION | QUERY] id", byAdmins, "ends a client's connection, or its statement; everybody may end his own"})
}

func helpRows(Overview, *ddl.ProxyCommand) (rows [][]any, _ error) {
	for _, s := range Statements() {
		rows = append(rows, []any{s[0], s[1], s[2]})
	}
	return rows, nil
}

var versionColumns = []protocol.Column{
	word("version", 64),
	word("commit", 64),
	word("go", 32),
	word("platform", 32),
	fraction("uptime_seconds", 1, mysql.NOT_NULL_FLAG),
}

func versionRows(c Overview, _ *ddl.ProxyCommand) ([][]any, error) {
	version, commit := c.Program()
	return [][]any{{version, commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, since(c.Server().Stats().Since)}}, nil
}
