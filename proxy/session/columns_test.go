package session

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// What has expired makes room for what is in use.
func TestTheCacheOfColumnsKeepsWhatIsInUse(t *testing.T) {
	var cc columnCache
	used := columnsKey{table: "photos"}
	cc.put(used, columnsOf{until: time.Now().Add(time.Hour)})
	for i := range 2 * maxTables {
		cc.put(columnsKey{table: strconv.Itoa(i)}, columnsOf{until: time.Now().Add(-time.Second)})
	}
	if _, ok := cc.get(used, false); !ok || len(cc.tables) > maxTables {
		t.Errorf("it has %d tables, and %v for the one in use", len(cc.tables), ok)
	}
	for i := range 2 * maxTables {
		cc.put(columnsKey{table: strconv.Itoa(i)}, columnsOf{until: time.Now().Add(time.Hour)})
	}
	if len(cc.tables) > maxTables {
		t.Errorf("it has %d tables, want %d at most", len(cc.tables), maxTables)
	}
}

// Comments and white space may stand between schema and table, so that one table has any number of
// spellings of any length.
func TestLongSpellingsOfATableAreNotKept(t *testing.T) {
	var cc columnCache
	of := columnsOf{until: time.Now().Add(time.Hour)}
	for _, c := range []struct {
		table string
		kept  bool
	}{
		{"`album`.photos", true},
		{"`" + strings.Repeat("ü", 64) + "` . `" + strings.Repeat("`` ", 64) + "`", true},
		{"`album`" + strings.Repeat(" ", 1000) + ".photos", false},
	} {
		k := columnsKey{schema: "album", table: c.table}
		cc.put(k, of)
		if _, kept := cc.get(k, false); kept != c.kept {
			t.Errorf("%.20s... of %d bytes: kept %v, want %v", c.table, len(c.table), kept, c.kept)
		}
	}
}
