package proxy_test

import (
	"fmt"
	"strconv"
	"testing"

	"seqproxy/proxy"
)

// A value that is neither NULL nor 0, but becomes 0 in the column, makes the server count, too. The
// proxy does not know the value, so the text that it sends has to find out. Any other value stays
// the row's key.
func TestAnExpressionThatBecomesZeroInTheColumnIsFilledIn(t *testing.T) {
	e := newEnv(t, bound(proxy.Binding{Table: "t", Column: "id", Sequence: "photos"}))
	createSequence(t, e, "photos")
	d, c := e.DirectConn(t, 0, e.Schemas[0], nil), e.Conn(t, e.Schemas[0], nil)
	for _, table := range []string{"t", "direct"} {
		exec(t, d, fmt.Sprintf("CREATE TABLE %s (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = %d", table, serversKey))
	}
	key := func(table string) uint64 {
		t.Helper()
		n, err := strconv.ParseUint(value(t, d, "SELECT MAX(id) FROM "+table), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, d, "DELETE FROM "+table)
		return n
	}
	last := uint64(0) // number of the sequence
	given := func(what string) {
		t.Helper()
		n := key("t")
		if n >= serversKey || n <= last {
			t.Errorf("%s: got key %d, want the next number of the sequence behind %d", what, n, last)
		}
		last = n
	}
	for _, mode := range []string{"STRICT_ALL_TABLES", ""} {
		for _, v := range []struct{ x, value string }{
			{"0.4", "@x"},
			{"'0.4'", "@x"},
			{"0.4e0", "@x"},
			{"'-0.4'", "@x"},
			{"1e-30", "@x"},
			{"0.0", "@x"},
			{"'0'", "@x"},
			{"' 0.3'", "@x"},
			{"'4e-1'", "@x"},
			{"FALSE", "@x"},
			{"NULL", "@x"},
			{"NULL", "-@x"},
			{"1", "@x - 1"},
			{"1.4", "@x - 1"},
			{"'1.4'", "(@x) - 1"},
			{"0", "'0.2' + '0.2'"},
			{"0", "-'0.4'"},
			{"3", "@x > 4"},
		} {
			exec(t, c, "SET sql_mode = '"+mode+"', @x = "+v.x, "INSERT INTO t (id, a) VALUES ("+v.value+", 1)")
			given(v.x + " as " + v.value)
		}
	}
	for _, x := range []string{"''", "'x'"} { // an error in a strict sql_mode
		exec(t, c, "SET @x = "+x, "INSERT INTO t SET a = 1, id = @x")
		given(x)
	}
	st, err := c.PrepareContext(t.Context(), "INSERT INTO t (id, a) VALUES (? - 1, 1)")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, x := range []any{1, 1.4, "1.4", nil} {
		if _, err := st.ExecContext(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		given(fmt.Sprintf("? - 1 of %#v", x))
	}

	exec(t, c, "SET sql_mode = 'STRICT_ALL_TABLES'")
	for _, v := range []struct{ x, value string }{
		{"7", "@x"},
		{"'7'", "@x"},
		{"0.5", "@x"},
		{"'0.5'", "@x"},
		{"0.6", "@x"},
		{"0.6e0", "@x"},
		{"12.4", "@x"},
		{"1e3", "@x"},
		{"'1e3'", "@x"},
		{"TRUE", "@x"},
		{"6", "@x + 1"},
		{"6", "(@x * 10) DIV 1"},
		{"9007199254740993", "@x"},
		{"'9007199254740993'", "@x"},
		{"9e18", "@x"},
		{"18446744073709551614", "@x"},
		{"'18446744073709551613'", "@x"},
	} {
		for _, on := range []string{"direct", "t"} {
			run := c
			if on == "direct" {
				run = d
			}
			exec(t, run, "SET @x = "+v.x, "INSERT INTO "+on+" (id, a) VALUES ("+v.value+", 1)")
		}
		if got, want := key("t"), key("direct"); got != want {
			t.Errorf("%s as %s: got key %d, want %d as direct", v.x, v.value, got, want)
		}
	}
}
