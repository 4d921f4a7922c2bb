package statement

import (
	"testing"

	"seqproxy/statement/lex"
)

func TestWhichTextsCouldBringRowsIntoAnUnknownTable(t *testing.T) {
	maria := lex.Mode{Server: lex.MariaDB(101119)}
	for _, c := range []struct {
		sql  string
		mode lex.Mode
		want bool
	}{
		// Texts that are read to their end: their tables are known.
		{"insert into t values (1)", lex.Mode{}, false},
		{"/*!999999 x */ insert into t values (1)", maria, false},
		{"insert into t values (1)\x00", lex.Mode{}, false},
		{"replace into .t values (1)", maria, false},
		{"load data infile 'x' into table t", lex.Mode{}, false},
		{"analyze insert into t values (1)", maria, false},
		{"set statement a = 1 for replace into t values (1)", maria, false},
		{"create table t select 1", lex.Mode{}, false},
		// Texts that insert no rows.
		{"select replace('a', 'b', 'c'), insert('a', 1, 1, 'b')", lex.Mode{}, false},
		{"help 'insert'", lex.Mode{}, false},
		{"load index into cache t", lex.Mode{}, false},
		{"set statement a = 1 for select replace('a', 'b', 'c')", maria, false},
		{"selec 1", lex.Mode{}, false},
		{"select \x01 1", lex.Mode{}, false},
		// Texts whose first statement no server accepts.
		{"insert into t values ('1)", lex.Mode{}, false},
		{"insert into t values (1) /*", lex.Mode{}, false},
		{"insert into t \x01 values (1)", lex.Mode{}, false},
		{"select 1; insert into t values ('1)", lex.Mode{}, true},
		// Bodies that the server stores or runs.
		{"begin not atomic insert into t values (1); end", lex.Mode{}, false},
		{"create procedure p() begin insert into t values (1); end", lex.Mode{}, false},
		{"create trigger g before insert on t for each row set new.a = 1", lex.Mode{}, false},
		// Texts that are not read to their end.
		{"insert into t values (1)", lex.Mode{Charset: lex.Unsupported}, true},
		{"if 1 then insert into t values (1); end if", lex.Mode{}, true},
		{"if 1 then load data infile 'x' into table t; end if", lex.Mode{}, true},
		{"insert into (select 1)", lex.Mode{}, true},
		{"insert into a.b.c values (1)", lex.Mode{}, true},
		{"begin not atomic select 1; end; insert into t values (1)", lex.Mode{}, true},
		{"begin not atomic select 1; end; insert into t select case when 1 then 2 end", lex.Mode{}, true},
		{"create procedure p() select 1; insert into t values (1)", lex.Mode{}, true},
		{"create procedure p() begin case 1 when 1 then select 1; end case; end; replace into t values (1)", lex.Mode{}, true},
		{"create procedure p() begin do 1; end; insert into t values (1); create procedure q() begin do 1; end", lex.Mode{}, true},
		{"create procedure p() begin if 1 then select 1; insert into t values (1); end if; loop insert into t values (2); end loop; end", lex.Mode{}, false},
		{"create procedure p() select 1 as begin; insert into t values (1)", lex.Mode{}, true},
		{"create procedure p() do 1; insert into t values (1); '", lex.Mode{}, true},
		{"begin not atomic do 1; end; insert into t select 1 as end", lex.Mode{}, true},
		{"begin not atomic do 1; end; insert into t values (1); begin not atomic do 1; end", lex.Mode{}, true},
		{"begin not atomic for i in 1 .. 2 do insert into t values (1); end for; end; select 1", lex.Mode{}, false},
		{"help 'x'; insert into t values (1); '", lex.Mode{}, true},
		{"begin not atomic do 1; end; insert into t values (1); \x01", lex.Mode{}, true},
		{"set sql_mode = 'NO_BACKSLASH_ESCAPES'; select '\\'; insert into t values ('x') -- '", lex.Mode{}, true},
		{"set names gbk; select '\xbf\\'; insert into t values ('x') -- '", lex.Mode{}, true},
		{"set names utf8mb4; insert into t values ('é')", lex.Mode{}, false},
		{"/*!40101 set names 'utf8' collate utf8_bin */; insert into t values (\"x\")", maria, false},
		{"set names utf8mb4; insert into é values ('x')", lex.Mode{}, true},
		{"set names utf8mb4, sql_mode = ''; insert into t values ('é')", lex.Mode{}, true},
		{"set names binary; insert into t values ('é')", lex.Mode{}, true},
		{"set names utf8mb4; insert into t values ('é')", lex.Mode{Charset: lex.GBK}, true},
		{"set @x = 1; select '\\'; insert into t values ('x') -- '", lex.Mode{}, false},
		// The table of this text is known.
		{"set statement a = (select 5) for insert into t values (1)", maria, false},
		{"set statement a = substring('abc' from 4 for 1) for execute immediate 'x'", maria, true},
		{"set statement a = 5 for set statement b = 6 for execute immediate 'x'", maria, true},
		{"set statement a = 1 for execute immediate 'x'", maria, true},
		{"set statement a = 1 for if 1 then select 1; insert into t values (1); end if", maria, true},
		{"select 1; prepare s from @q; execute s", lex.Mode{}, true},
		{"insert into t values ([a])", lex.Mode{SQLMode: lex.SQLMode{Brackets: true}}, true},
	} {
		var st Statement
		st.Analyze([]byte(c.sql), c.mode)
		if got := st.Words&MayBringRows != 0; got != c.want {
			t.Errorf("%q: got %v, want %v", c.sql, got, c.want)
		}
	}
}

func TestTheTablesThatAreFoundBehindOtherWords(t *testing.T) {
	for _, sql := range []string{
		"set statement a = (select 5) for insert into t values (1)",
		"set statement a = replace('a', 'a', '') for insert into t values (1)",
		"set statement a = 1 for analyze replace into t values (1)",
		"create or replace table t (id int) values ('x')",
		"create table t (id int) as (values ('x'))",
		"create table if not exists t select 1",
		"create table t (id int) with c as (select 1) select * from c",
	} {
		var st Statement
		st.Analyze([]byte(sql), lex.Mode{Server: lex.MariaDB(101119)})
		if len(st.Tables) != 1 || string(st.Tables[0].Name) != "t" {
			t.Errorf("%s: got %+v, want the table t", sql, st.Tables)
		}
	}
	for sql, want := range map[string]bool{"insert into a": false, "insert into a   ": false, "insert into a.": false, "insert into a.t (": true, "insert into t values": true} {
		if got := ReadBeginning([]byte(sql), lex.Mode{}).Certain; got != want {
			t.Errorf("%s: certain %v, want %v", sql, got, want)
		}
	}
}
