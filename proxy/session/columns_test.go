package session

import (
	"strconv"
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
