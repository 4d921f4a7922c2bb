package define_test

import (
	"testing"

	"seqproxy/sequence/define"
)

func TestColumnTypesHaveTheirMaximum(t *testing.T) {
	for text, want := range map[string]uint64{
		"tinyint(4)": 127, "tinyint(3) unsigned": 255, "smallint": 32767, "smallint unsigned": 65535,
		"mediumint(8) unsigned": 16777215, "int(11)": 2147483647, "INT UNSIGNED": 4294967295,
		"bigint(20)": 9223372036854775807, "bigint(20) unsigned": 18446744073709551615, "bigint unsigned zerofill": 18446744073709551615,
		"double": 0, "decimal(20,0)": 0, "varchar(20)": 0, "bit(64)": 0, "": 0,
	} {
		if got, ok := define.ColumnMax(text); got != want || ok != (want != 0) {
			t.Errorf("ColumnMax(%q) = %d, %v; want %d", text, got, ok, want)
		}
	}
}
