package idiom

import (
	"slices"
	"strings"
	"testing"

	"seqproxy/statement/lex"
)

func TestSimpleSelectReadsWhatDriversSend(t *testing.T) {
	v := func(name, column string) SimpleItem {
		return SimpleItem{Kind: SimpleVariable, Name: name, Column: column}
	}
	f := func(name, column string) SimpleItem {
		return SimpleItem{Kind: SimpleFunction, Name: name, Column: column}
	}
	for _, c := range []struct {
		sql  string
		want []SimpleItem
	}{
		{"select @@version_comment limit 1", []SimpleItem{v("version_comment", "@@version_comment")}},
		{"SELECT 1", []SimpleItem{{Kind: SimpleNumber, Value: "1", Column: "1"}}},
		{"SELECT 'it''s' ;", []SimpleItem{{Kind: SimpleString, Value: "it's", Column: "it's"}}},
		{"select null, true as t", []SimpleItem{{Kind: SimpleWord, Value: "null", Column: "NULL"}, {Kind: SimpleWord, Value: "true", Column: "t"}}},
		{"SELECT DATABASE()", []SimpleItem{f("database", "DATABASE()")}},
		{"select Version ( ) v from dual", []SimpleItem{f("version", "v")}},
		{"select USER(), CURRENT_USER, current_user()", []SimpleItem{f("user", "USER()"), f("current_user", "CURRENT_USER"), f("current_user", "current_user()")}},
		{"select now()", []SimpleItem{f("now", "now()")}},
		{"select connection_id() AS `my id`", []SimpleItem{f("connection_id", "my id")}},
		{
			"SELECT @@max_allowed_packet,@@system_time_zone,@@time_zone,@@auto_increment_increment",
			[]SimpleItem{
				v("max_allowed_packet", "@@max_allowed_packet"), v("system_time_zone", "@@system_time_zone"),
				v("time_zone", "@@time_zone"), v("auto_increment_increment", "@@auto_increment_increment"),
			},
		},
		{
			"/* mysql-connector-j-8.0.33 (Revision: x) */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@GLOBAL.Init_Connect AS init_connect",
			[]SimpleItem{
				v("auto_increment_increment", "auto_increment_increment"), v("character_set_client", "character_set_client"),
				{Kind: SimpleVariable, Name: "init_connect", Global: true, Column: "init_connect"},
			},
		},
		{"select @@validate_password.policy", []SimpleItem{v("validate_password.policy", "@@validate_password.policy")}},

		{"select 1e5from dual", []SimpleItem{{Kind: SimpleNumber, Value: "1e5", Column: "1e5"}}},
		{"select @@`version`", []SimpleItem{v("version", "@@`version`")}},

		{"select @@ version", nil},
		{"select @@/**/`version`", nil},
		{"select \\N", nil},
		{"select 1 limit 0", nil},
		{"select 1 limit 1 offset 1", nil},
		{"select 1 + 1", nil},
		{"select -1", nil},
		{"select a", nil},
		{"select 1 from t", nil},
		{"select f(1)", nil},
		{"select a.f()", nil},
		{"select CURRENT_TIMESTAMP", nil},
		{"select distinct 1", nil},
		{"select 1 union select 2", nil},
		{"select 1; select 2", nil},
		{"select 1 as", nil},
		{"select 1 as select", nil},
		{"select 1,", nil},
		{"select", nil},
		{"select ?", nil},
		{"select 'a' 'b'", nil},
		{"select @a", nil},
		{"select @@", nil},
		{"select /*! 1 */", nil},
		{"select 'a", nil},
		{"(select 1)", nil},
		{"show tables", nil},
		{"", nil},
	} {
		got, ok := SimpleSelect([]byte(c.sql), lex.Mode{})
		if ok != (c.want != nil) || !slices.Equal(got, c.want) {
			t.Errorf("%q:\n got %+v %v\nwant %+v", c.sql, got, ok, c.want)
		}
	}
}

// Reading a query takes more memory than its text, and no KILL interrupts it.
func TestAQuestionIsOfASizeThatDriversAsk(t *testing.T) {
	most := map[string]func(n int) string{
		"bytes": func(n int) string { return "SELECT 1" + strings.Repeat(" ", n-len("SELECT 1")) },
		"items": func(n int) string { return "SELECT " + strings.Repeat("1,", n-1) + "1" },
	}
	for what, n := range map[string]int{"bytes": maxQuestion, "items": maxItems} {
		if _, ok := SimpleSelect([]byte(most[what](n)), lex.Mode{}); !ok {
			t.Errorf("%d %s: got none", n, what)
		}
		if _, ok := SimpleSelect([]byte(most[what](n+1)), lex.Mode{}); ok {
			t.Errorf("%d %s: is taken", n+1, what)
		}
	}
}
