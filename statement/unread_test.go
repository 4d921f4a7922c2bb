package statement

import "testing"

func TestWhichTextsCouldBringRowsIntoAnUnknownTable(t *testing.T) {
	maria := Mode{Server: MariaDB(101119)}
	for _, c := range []struct {
		sql  string
		mode Mode
		want bool
	}{
		// What is read to its end has its tables.
		{"insert into t values (1)", Mode{}, false},
		{"/*!999999 x */ insert into t values (1)", maria, false},
		{"insert into t values (1)\x00", Mode{}, false},
		{"replace into .t values (1)", maria, false},
		{"load data infile 'x' into table t", Mode{}, false},
		{"analyze insert into t values (1)", maria, false},
		{"set statement a = 1 for replace into t values (1)", maria, false},
		{"create table t select 1", Mode{}, false},
		// What brings none in.
		{"select replace('a', 'b', 'c'), insert('a', 1, 1, 'b')", Mode{}, false},
		{"help 'insert'", Mode{}, false},
		{"load index into cache t", Mode{}, false},
		{"set statement a = 1 for select replace('a', 'b', 'c')", maria, false},
		{"selec 1", Mode{}, false},
		{"select \x01 1", Mode{}, false},
		// What no server takes, in the first statement.
		{"insert into t values ('1)", Mode{}, false},
		{"insert into t values (1) /*", Mode{}, false},
		{"insert into t \x01 values (1)", Mode{}, false},
		{"select 1; insert into t values ('1)", Mode{}, true},
		// What the server keeps for itself.
		{"begin not atomic insert into t values (1); end", Mode{}, false},
		{"create procedure p() begin insert into t values (1); end", Mode{}, false},
		{"create trigger g before insert on t for each row set new.a = 1", Mode{}, false},
		// What is not read to its end.
		{"insert into t values (1)", Mode{Charset: Unsupported}, true},
		{"if 1 then insert into t values (1); end if", Mode{}, true},
		{"if 1 then load data infile 'x' into table t; end if", Mode{}, true},
		{"insert into (select 1)", Mode{}, true},
		{"insert into a.b.c values (1)", Mode{}, true},
		{"begin not atomic select 1; end; insert into t values (1)", Mode{}, true},
		{"begin not atomic select 1; end; insert into t select case when 1 then 2 end", Mode{}, true},
		{"create procedure p() select 1; insert into t values (1)", Mode{}, true},
		{"create procedure p() begin case 1 when 1 then select 1; end case; end; replace into t values (1)", Mode{}, true},
		{"set statement a = 1 for execute immediate 'x'", maria, true},
		{"set statement a = 1 for if 1 then select 1; insert into t values (1); end if", maria, true},
		{"select 1; prepare s from @q; execute s", Mode{}, true},
		{"insert into t values ([a])", Mode{Brackets: true}, true},
	} {
		var st Statement
		st.Analyze([]byte(c.sql), c.mode)
		if got := st.Words&MayBringRows != 0; got != c.want {
			t.Errorf("%q: got %v, want %v", c.sql, got, c.want)
		}
	}
}
