package define

import (
	"math"
	"strings"
)

// Quote quotes an identifier.
func Quote(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// ColumnMax returns the highest number of a column type ("bigint(20) unsigned", as
// information_schema has it); false if it is no integer.
func ColumnMax(columnType string) (highest uint64, ok bool) {
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
