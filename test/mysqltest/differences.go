package mysqltest

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/internal/mysqld"
)

// IsMariaDB tells the families apart, for tests of features that only one has.
func (s *Server) IsMariaDB() bool { return s.Flavour() == mysqld.MariaDB }

// OnMariaDB skips the test on other servers, which lack a feature. reason names it.
func (s *Server) OnMariaDB(t testing.TB, reason string) {
	t.Helper()
	if !s.IsMariaDB() {
		t.Skipf("%s %s has no %s", s.Flavour(), s.Version(), reason)
	}
}

// Numbers returns a table expression with the rows 1 to n in its column seq. It uses MariaDB's
// sequence engine, or a join of digits.
func (s *Server) Numbers(n int) string {
	if s.IsMariaDB() {
		return fmt.Sprintf("seq_1_to_%d", n)
	}
	const digits = "(SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 " +
		"UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	sum, tables := "1", make([]string, 0, 10)
	for power := 1; power < n; power *= 10 {
		alias := fmt.Sprintf("d%d", power)
		sum = fmt.Sprintf("%s + %d * %s.n", sum, power, alias)
		tables = append(tables, digits+" AS "+alias)
	}
	if len(tables) == 0 {
		return "(SELECT 1 AS seq) AS numbers"
	}
	return fmt.Sprintf("(SELECT %s AS seq FROM %s WHERE %s <= %d) AS numbers", sum, strings.Join(tables, ", "), sum, n)
}
