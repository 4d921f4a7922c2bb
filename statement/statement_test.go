package statement

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/statement/lex"
)

// analyze is Analyze in the default mode with a fresh Statement.
func analyze(sql string) *Statement {
	var st Statement
	st.Analyze([]byte(sql), lex.Mode{})
	return &st
}

var kindNames = map[Kind]string{
	ExplainRoute: "ExplainRoute",
	Other:        "Other", Empty: "Empty", Select: "Select", Insert: "Insert", Replace: "Replace", Update: "Update",
	Delete: "Delete", With: "With", Values: "Values", Set: "Set", Use: "Use", Begin: "Begin", Commit: "Commit",
	Rollback: "Rollback", RollbackToSavepoint: "RollbackToSavepoint", Savepoint: "Savepoint", Show: "Show",
	ShowWarnings: "ShowWarnings", ShowSequences: "ShowSequences", ShowCreateSequence: "ShowCreateSequence", GetDiagnostics: "GetDiagnostics",
	Explain: "Explain", Call: "Call", Do: "Do", Load: "Load", Prepare: "Prepare", Execute: "Execute",
	ExecuteImmediate: "ExecuteImmediate", Deallocate: "Deallocate", Handler: "Handler",
	LockTables: "LockTables", UnlockTables: "UnlockTables", Flush: "Flush", Kill: "Kill", XA: "XA",
	CreateDatabase: "CreateDatabase", AlterDatabase: "AlterDatabase", DropDatabase: "DropDatabase",
	CreateTemporaryTable: "CreateTemporaryTable", CreateStored: "CreateStored", OtherDDL: "OtherDDL",
	CreateSequence: "CreateSequence", AlterSequence: "AlterSequence", DropSequence: "DropSequence",
	FlushSequences: "FlushSequences", CheckSequence: "CheckSequence", RepairSequence: "RepairSequence", Seqproxy: "Seqproxy", Multi: "Multi",
}

func TestKindIsToldByTheFirstWords(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want Kind
	}{
		{"", Empty},
		{" \t\r\n", Empty},
		{";;; -- nothing", Empty},
		{"/* nothing */", Empty},
		{"/*! */", Empty},
		{"# nothing", Empty},
		{"select 1", Select},
		{"SeLeCt/**/1", Select},
		{"-- first\nselect 1", Select},
		{"--\tfirst\nselect 1", Select},
		{"# first\nselect 1", Select},
		{"/*x*/ /*y*/select 1", Select},
		{"/*! select */ 1", Select},
		{"/*!40101 select */ 1", Select},
		{"/*M! select */ 1", Select},
		{"(select 1)", Select},
		{"((select 1) union (select 2))", Select},
		{"(values (1))", Values},
		{"(1)", Other},
		{"((with a as (select 1) select * from a))", With},
		{"(table t)", Select},
		{"insert", Insert},
		{"insert 'x' values (1)", Insert},
		{"release x", Other},
		{"unlock", Other},
		{"backup stage start", Other},
		{"create definer view v as select ?", CreateStored},
		{"table t", Select},
		{";select 1;;", Select},
		{"insert into t values (1)", Insert},
		{"replace t set a = 1", Replace},
		{"update t set a = 1", Update},
		{"delete from t", Delete},
		{"with a as (select 1) select * from a", With},
		{"values (1), (2)", Values},
		{"set a = 1", Set},
		{"use a", Use},
		{"use `a`;", Use},
		{"use a b", Other},
		{"use", Other},
		{"begin", Begin},
		{"begin work;", Begin},
		{"begin /* hello */", Begin},
		{"begin not atomic select 1; end", Other},
		{"begin select 1; end", Other},
		{"start transaction", Begin},
		{"start transaction with consistent snapshot, read only", Begin},
		{"start slave", Other},
		{"commit", Commit},
		{"commit work and no chain no release", Commit},
		{"commit prepared", Other},
		{"rollback", Rollback},
		{"rollback work", Rollback},
		{"rollback to x", RollbackToSavepoint},
		{"rollback work to savepoint x", RollbackToSavepoint},
		{"savepoint x", Savepoint},
		{"release savepoint x", Savepoint},
		{"show tables", Show},
		{"show warnings limit 1", ShowWarnings},
		{"show errors", ShowWarnings},
		{"show count(*) warnings", ShowWarnings},
		{"show sequences", ShowSequences},
		{"show sequences;", ShowSequences},
		{"show sequences like 'a'", ShowSequences},
		{"get diagnostics @a = number", GetDiagnostics},
		{"get current diagnostics condition 1 @a = message_text", GetDiagnostics},
		{"get lost", Other},
		{"explain select 1", Explain},
		{"desc t", Explain},
		{"describe t", Explain},
		{"analyze select 1", Explain},
		{"analyze format=json select 1", Explain},
		{"analyze table t", OtherDDL},
		{"analyze local table t", OtherDDL},
		{"call p()", Call},
		{"do sleep(0)", Do},
		{"load data infile 'x' into table t", Load},
		{"load xml infile 'x' into table t", Load},
		{"load index into cache t", OtherDDL},
		{"prepare s from 'select 1'", Prepare},
		{"execute s", Execute},
		{"execute immediate 'select 1'", ExecuteImmediate},
		{"deallocate prepare s", Deallocate},
		{"drop prepare s", Deallocate},
		{"handler t open", Handler},
		{"lock tables t read", LockTables},
		{"lock table t write", LockTables},
		{"lock instance for backup", Other},
		{"unlock tables", UnlockTables},
		{"flush tables", Flush},
		{"kill 5", Kill},
		{"xa start 'x'", XA},
		{"create database a", CreateDatabase},
		{"create schema if not exists a", CreateDatabase},
		{"create or replace database a", CreateDatabase},
		{"alter database a character set utf8mb4", AlterDatabase},
		{"drop schema if exists a", DropDatabase},
		{"create temporary table t (a int)", CreateTemporaryTable},
		{"create or replace temporary table t (a int)", CreateTemporaryTable},
		{"create table t (a int)", OtherDDL},
		{"create view v as select 1", CreateStored},
		{"create or replace algorithm=merge definer=`a`@`b` sql security invoker view v as select 1", CreateStored},
		{"create definer=current_user() procedure p() begin select 1; select 2; end", CreateStored},
		{"create definer='view'@'%' trigger t before insert on x for each row set new.id = 1", CreateStored},
		{"create aggregate function f returns string soname 'x'", CreateStored},
		{"create event e on schedule every 1 day do begin select 1; end", CreateStored},
		{"create /*!50003 definer=`a`@`b`*/ /*!50003 trigger x after insert on t for each row begin a; end */", CreateStored},
		{"alter event e do select 1", CreateStored},
		{"alter algorithm = merge view v as select 1", CreateStored},
		{"alter definer=root@localhost view v as select 1", CreateStored},
		{"alter table t add column view int", OtherDDL},
		{"create unique index i on t (a)", OtherDDL},
		{"create fulltext index view on t (a)", OtherDDL},
		{"create user view", OtherDDL},
		{"create role r", OtherDDL},
		{"drop table t", OtherDDL},
		{"drop temporary table t", OtherDDL},
		{"truncate t", OtherDDL},
		{"rename table a to b", OtherDDL},
		{"grant all on *.* to a", OtherDDL},
		{"optimize table t", OtherDDL},
		{"create sequence s", CreateSequence},
		{"drop sequence s", DropSequence},
		{"select 1; select 2", Multi},
		{"select 1;; ; insert into t values (1);", Multi},
		{"create view v as select 1; select 2", Multi},
		{"use a; select 1", Multi},
		{"commit; begin", Multi},
		{"select ';'", Select},
		{"select 1 /* ; */", Select},
		{"select 1 -- ; select 2", Select},
		{"select 1 --; select 2", Multi},
		{"label: begin not atomic end", Other},
		{"if 1 then select 1; end if", Other},
		{"selec 1", Other},
		{"selects", Other},
		{"`select` 1", Other},
		{"'select'", Other},
		{"@a", Other},
		{"1", Other},
		{"select 'unterminated", Other},
		{"select \"unterminated", Other},
		{"select `unterminated", Other},
		{"select 'a\\'", Other},
		{"select /* unterminated", Other},
		{"select /*! unterminated", Other},
		{"select 1\x00", Select},
		{"select '\x00'", Select},
		{"select `\x00`", Other},
		{"select 1 \x00;\n", Select},
		{"select 1; \x00 ' insert", Select},
		{"select 1 \x00 x", Other},
		{"\x00select 1", Other},
		{"select \x01", Other},
		{"select /*! /*! 1 */ */", Other},
	} {
		if got := analyze(c.sql).Kind; got != c.want {
			t.Errorf("%q: got kind %s, want %s", c.sql, kindNames[got], kindNames[c.want])
		}
	}
}

var wordNames = []string{
	"ReadsLastInsertID", "SetsLastInsertID", "ReadsRowCount", "ReadsFoundRows", "ReadsWarnings", "CalcFoundRows",
	"SetsUserVariable", "SetsUserLiteral", "ReadsUserVariable", "UserLock", "TableLock", "GlobalLock",
	"TemporaryTable", "HandlerOpen", "SQLPrepare", "Into", "LocalInfile", "ConnectionID", "HasNextval",
	"SequenceFunction", "SystemSchema", "Chain", "Release", "VersionedComment", "ReadByVersion", "ExecutableComment", "UnionWord",
	"FromTable", "Opaque", "ChangesReading", "CallsProcedure", "MayBringRows", "SequenceStatement", "LooksForSequences", "ChangesTable",
	"PlainParts", "UsesSchema", "MaySetMode", "MaySetStep",
}

func (w Words) names() string {
	var names []string
	for i, name := range wordNames {
		if w&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func TestWordsAreFoundWhereTheyAreCodeAndNowhereElse(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want Words
	}{
		{"select 1", 0},
		{"select last_insert_id()", ReadsLastInsertID},
		{"select last_insert_id ( )", ReadsLastInsertID},
		{"select Last_Insert_ID/**/\n()", ReadsLastInsertID},
		{"select `last_insert_id`()", ReadsLastInsertID},
		{"select last_insert_id", 0},
		{"select last_insert_id from t", FromTable},
		{"select a.last_insert_id()", 0},
		{"select a . last_insert_id()", 0},
		{"select `a`.`last_insert_id`()", 0},
		{"select 'last_insert_id()'", 0},
		{"select \"last_insert_id()\"", 0},
		{"select `last_insert_id()`", 0},
		{"select 1 /* last_insert_id() */", 0},
		{"select 1 -- last_insert_id()", 0},
		{"select 1 # last_insert_id()", 0},
		{"select 1 --last_insert_id()", ReadsLastInsertID},
		{"select 1 /*! + last_insert_id() */", ReadsLastInsertID | ExecutableComment},
		{"select 1 /*!40000 + last_insert_id() */", ReadsLastInsertID | ExecutableComment},
		{"select 1 /*M!100000 + last_insert_id() */", ReadsLastInsertID | ExecutableComment | VersionedComment | ReadByVersion},
		{"select 1 /*!80000 + last_insert_id() */", ReadsLastInsertID | ExecutableComment | VersionedComment | ReadByVersion},
		{"select 1 /*! /* last_insert_id() */ */", ExecutableComment},
		{"select @@last_insert_id", ReadsLastInsertID},
		{"select @@identity", ReadsLastInsertID},
		{"select @@SESSION.Identity", ReadsLastInsertID},
		{"select @@local . last_insert_id", ReadsLastInsertID},
		{"select @@session.`identity`", ReadsLastInsertID},
		{"select @@global.identity", 0},
		{"select @@identity_x", 0},
		{"select @identity", ReadsUserVariable},
		{"select @@warning_count", ReadsWarnings},
		{"select @@error_count", ReadsWarnings},
		{"select last_insert_id(5)", SetsLastInsertID},
		{"select last_insert_id(last_insert_id())", SetsLastInsertID | ReadsLastInsertID},
		{"update sequence set id = last_insert_id(id + 1)", SetsLastInsertID},
		{"set last_insert_id = 5", SetsLastInsertID},
		{"set @@session.identity = 5", SetsLastInsertID},
		{"set insert_id = 5", SetsLastInsertID},
		{"select row_count()", ReadsRowCount},
		{"select found_rows()", ReadsFoundRows},
		{"select sql_calc_found_rows 1", CalcFoundRows},
		{"select a.sql_calc_found_rows", 0},
		{"show warnings", ReadsWarnings},
		{"get diagnostics @a = number", ReadsWarnings | SetsUserVariable | ReadsUserVariable},
		{"show session variables like 'identity'", ReadsLastInsertID | ReadsWarnings},
		{"select @a", ReadsUserVariable},
		{"select @'a', @`b`, @\"c\"", ReadsUserVariable},
		{"select @a := 1", ReadsUserVariable | SetsUserVariable},
		{"select 1 into @a", SetsUserVariable | Into},
		{"select 1 into outfile 'x'", Into},
		{"select 1 into dumpfile 'x'", Into},
		{"insert into t values (1)", 0},
		{"insert into outfile values (1)", 0},
		{"select 1e5into @a", SetsUserVariable | Into},
		{"select 1e5from t", FromTable},
		{"select 1e5union select 2", UnionWord},
		{"select union.x", 0},
		{"load data infile 'x' into table t (@a, b) set v = @a", SetsUserVariable | ReadsUserVariable},
		{"load xml infile 'x' into table t (@a)", SetsUserVariable | ReadsUserVariable},
		{"select @@ identity, @@/**/last_insert_id, @@\npseudo_thread_id", 0},
		{"set @a = 1", SetsUserLiteral},
		{"set @a = 'x', @b = -5, @c = null, @d := 0x1f", SetsUserLiteral},
		{"set @a = 1 + 1", SetsUserVariable},
		{"set @a = @b", SetsUserVariable | ReadsUserVariable},
		{"set @a = now()", SetsUserVariable},
		{"select get_lock('a', 1)", UserLock},
		{"do release_lock('a')", UserLock},
		{"do release_all_locks()", UserLock},
		{"select get_lock", 0},
		{"lock tables t write", TableLock},
		{"flush tables with read lock", GlobalLock},
		{"flush tables a, b for export", GlobalLock},
		{"flush tables", 0},
		{"create temporary table t (a int)", TemporaryTable},
		{"drop temporary table t", TemporaryTable},
		{"create table t (a int)", ChangesTable},
		{"drop table if exists t", ChangesTable},
		{"drop tables t, u", ChangesTable},
		{"drop database b", ChangesTable},
		{"use b; set @@sql_mode = '', auto_increment_increment = 2", UsesSchema | MaySetMode | MaySetStep | ChangesReading},
		{"drop trigger t", 0},
		{"alter table t add a int", ChangesTable},
		{"alter online table t add a int", ChangesTable},
		{"alter ignore table t add a int", ChangesTable},
		{"set statement lock_wait_timeout = 1 for alter table t add a int", ChangesTable | Opaque},
		{"alter table d.t disable keys", 0},
		{"/*!40000 alter table `t` enable keys */", ExecutableComment},
		{"rename table t to u", ChangesTable},
		{"truncate table t", 0},
		{"handler db.t open as h", HandlerOpen},
		{"handler t read first", 0},
		{"prepare s from 'x'", SQLPrepare},
		{"load data local infile 'x' into table t", LocalInfile},
		{"load data concurrent local infile 'x' into table t", LocalInfile},
		{"load data infile 'x' into table t", 0},
		{"select connection_id()", ConnectionID},
		{"select @@pseudo_thread_id", ConnectionID},
		{"select connection_id", 0},
		{"select * from information_schema.processlist where id = connection_id()", ConnectionID | SystemSchema | FromTable},
		{"select nextval('a')", HasNextval},
		{"select nextval", 0},
		{"select photos.nextval from photos", FromTable},
		{"select nextval from t", FromTable},
		{"select lastval(s)", SequenceFunction},
		{"select setval(s, 1)", SequenceFunction},
		{"select next value for s", HasNextval},
		{"select previous value for s", SequenceFunction},
		{"commit and chain", Chain},
		{"commit and no chain", 0},
		{"rollback release", Release},
		{"rollback no release", 0},
		{"select 1 union select 2", UnionWord},
		{"select 1 from dual", 0},
		{"select 1 from dual, t", FromTable},
		{"select extract(year from now())", 0},
		{"select trim(leading 'a' from 'b')", 0},
		{"select (select 1 from t)", FromTable},
		{"begin not atomic select last_insert_id(); end", ReadsLastInsertID | Opaque},
		{"set statement lock_wait_timeout = 1 for select 1", Opaque},
		{"set statement max_statement_time = 1 for select 1", 0},
	} {
		if got := analyze(c.sql).Words; got != c.want {
			t.Errorf("%q: got words [%s], want [%s]", c.sql, got.names(), c.want.names())
		}
	}
}

func TestPlainIsOnlyWhatMayBePipelined(t *testing.T) {
	for sql, want := range map[string]bool{
		"select 1": true,
		"select * from t where a = 'x' and b = ?": true,
		"select @a":                            true,
		"select /*! high_priority */ 1":        true,
		"insert into t (a) values (1), (2)":    true,
		"replace into t (a) values (1)":        true,
		"update t set a = a + 1":               true,
		"delete from t":                        true,
		"with a as (select 1) select * from a": true,
		"show tables":                          true,
		"select 1;":                            true,

		"select last_insert_id()":                 false,
		"select last_insert_id(5)":                false,
		"select row_count()":                      false,
		"select found_rows()":                     false,
		"select sql_calc_found_rows 1":            false,
		"select connection_id()":                  false,
		"select @a := 1":                          false,
		"select 1 into @a":                        false,
		"select get_lock('a', 1)":                 false,
		"select nextval('a')":                     false,
		"select 1e5into@c":                        false,
		"load data infile 'x' into table t (@a)":  false,
		"insert into t values (nextval('a'))":     false,
		"update t set a = last_insert_id(5)":      false,
		"select /*!99999 1, */ 2":                 false,
		"select 1; select 2":                      false,
		"set a = 1":                               false,
		"begin":                                   false,
		"commit":                                  false,
		"use a":                                   false,
		"call p()":                                false,
		"show warnings":                           false,
		"load data infile 'x' into table t":       false,
		"create table t (a int)":                  false,
		"":                                        false,
		"what is this":                            false,
		"select 'unterminated":                    false,
		"insert into t values (last_insert_id())": false,
	} {
		if got := analyze(sql).Plain(); got != want {
			t.Errorf("%q: got plain %v, want %v", sql, got, want)
		}
	}
}

func TestPredicatesAboutLastInsertID(t *testing.T) {
	for _, c := range []struct {
		sql            string
		changes, reads bool
	}{
		{"select 1", false, false},
		{"select last_insert_id()", false, true},
		{"select last_insert_id(5)", true, false},
		{"insert into t values (1)", true, false},
		{"update t set a = 1", true, false},
		{"set a = 1", false, false},
		{"set last_insert_id = 1", true, false},
		{"call p()", true, true},
		{"select 1; select 2", true, true},
		{"what", true, true},
		{"show warnings", false, true},
		{"execute s", true, true},
		{"begin", false, false},
		{"load data infile 'x' into table t", true, false},
		{"create table t select 1", true, false},
		{"begin not atomic select 1; end", true, true},
		{"select * from information_schema.session_variables", false, true},
	} {
		st := analyze(c.sql)
		if got := st.MayChangeLastInsertID(); got != c.changes {
			t.Errorf("%q: got MayChangeLastInsertID %v, want %v", c.sql, got, c.changes)
		}
		if got := st.MayReadLastStatement(); got != c.reads {
			t.Errorf("%q: got MayReadLastStatement %v, want %v", c.sql, got, c.reads)
		}
	}
}

// describe writes the calls of a statement in one line: function, text, name, row, parameters
// before.
func describe(sql string, st *Statement) string {
	funcs := map[Func]string{Nextval: "N", LastInsertID: "L", LastInsertIDVariable: "V", CallConnectionID: "C", PseudoThreadID: "P", Lastval: "A", Setval: "S"}
	var parts []string
	for _, c := range st.Calls {
		name := string(c.Name)
		if c.Schema != nil {
			name = string(c.Schema) + "." + name
		}
		parts = append(parts, fmt.Sprintf("%s%d[%s]%s/%d/%d", funcs[c.Func], c.Form, sql[c.Start:c.End], name, c.Row, c.ParamsBefore))
	}
	return strings.Join(parts, " ")
}

func TestCallsAreExactlyTheCalls(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"select nextval('photos')", "N1[nextval('photos')]photos/0/0"},
		{"select NextVal ( /* a */ \"photos\" )", "N1[NextVal ( /* a */ \"photos\" )]photos/0/0"},
		{"select nextval(photos)", "N1[nextval(photos)]photos/0/0"},
		{"select nextval(`pho``tos`)", "N1[nextval(`pho``tos`)]pho`tos/0/0"},
		{"select nextval('it''s')", "N1[nextval('it''s')]it's/0/0"},
		{`select nextval('a\'b\\c\n')`, `N1[nextval('a\'b\\c\n')]a'b\c` + "\n/0/0"},
		{"select nextval -- x\n('a')", "N1[nextval -- x\n('a')]a/0/0"},
		{"select nextval(db.s)", "N2[nextval(db.s)]db.s/0/0"},
		{"select nextval(`d`.`s`)", "N2[nextval(`d`.`s`)]d.s/0/0"},
		{"select nextval(?)", "N3[nextval(?)]/0/0"},
		{"select ?, nextval(?), ?, nextval('a', ?), nextval(?, ?), ?, nextval('b')", "N3[nextval(?)]/0/1 N1[nextval('a', ?)]a/0/3 N3[nextval(?, ?)]/0/4 N1[nextval('b')]b/0/7"},
		{"select nextval(@x)", "N4[nextval(@x)]/0/0"},
		{"select nextval()", "N5[nextval()]/0/0"},
		{"select nextval(5)", "N5[nextval(5)]/0/0"},
		{"select nextval('a', 5)", "N1[nextval('a', 5)]a/0/0"},
		{"select nextval('a', 5 + 1)", "N5[nextval('a', 5 + 1)]/0/0"},
		{"select nextval(concat('a', 'b'), 5)", "N5[nextval(concat('a', 'b'), 5)]/0/0"},
		{"select nextval('a' 'b')", "N5[nextval('a' 'b')]/0/0"},
		{"select nextval(N'a')", "N5[nextval(N'a')]/0/0"},
		{"select nextval(_utf8'a')", "N5[nextval(_utf8'a')]/0/0"},
		{"select nextval(concat('a', last_insert_id()))", "N5[nextval(concat('a', last_insert_id()))]/0/0"},
		{"select nextval('a'), nextval('b')", "N1[nextval('a')]a/0/0 N1[nextval('b')]b/0/0"},
		{"select ?, nextval('a'), ?, nextval('b')", "N1[nextval('a')]a/0/1 N1[nextval('b')]b/0/2"},
		{"select '?', `?`, /* ? */ nextval('a')", "N1[nextval('a')]a/0/0"},
		{
			"insert into t values (nextval('a'), 1), (2, nextval('a')), ((nextval('b')), 3)",
			"N1[nextval('a')]a/0/0 N1[nextval('a')]a/1/0 N1[nextval('b')]b/2/0",
		},
		{"insert t values row(1, 2), row(3, nextval('a'))", "N1[nextval('a')]a/1/0"},
		{"insert into t set a = nextval('a'), b = ?, c = last_insert_id()", "N1[nextval('a')]a/0/0 L0[last_insert_id()]/0/1"},
		{"insert into nextval (a) values (1)", ""},
		{"insert nextval(a) values (nextval('x'))", "N1[nextval('x')]x/0/0"},
		{"insert into db.nextval (a) value (nextval('x'))", "N1[nextval('x')]x/0/0"},
		{"replace into t (nextval) values (nextval('x'))", "N1[nextval('x')]x/0/0"},
		{
			"select last_insert_id(), @@identity, connection_id(), @@session.pseudo_thread_id",
			"L0[last_insert_id()]/0/0 V0[@@identity]/0/0 C0[connection_id()]/0/0 P0[@@session.pseudo_thread_id]/0/0",
		},
		{"select `last_insert_id`(), `connection_id` ()", "L0[`last_insert_id`()]/0/0 C0[`connection_id` ()]/0/0"},
		{"select * from t where id = last_insert_id()", "L0[last_insert_id()]/0/0"},
		{"update t set a = 1 where id = last_insert_id()", "L0[last_insert_id()]/0/0"},
		{"set @a = last_insert_id()", "L0[last_insert_id()]/0/0"},
		{"kill connection_id()", "C0[connection_id()]/0/0"},
		{"select /*! nextval('a') */", "N1[nextval('a')]a/0/0"},
		{"select /*!50000 nextval /* b */ ('a') */", "N1[nextval /* b */ ('a')]a/0/0"},

		// Never a call.
		{"select nextval", ""},
		{"select nextval from t", ""},
		{"select nextval + 1", ""},
		{"select photos.nextval from photos", ""},
		{"select photos.nextval('a')", ""},
		{"select photos . nextval('a')", ""},
		{"select `nextval`('a')", ""},
		{"select 'nextval(''a'')'", ""},
		{`select 'it\'s nextval(\'a\')'`, ""},
		{"select \"nextval('a')\"", ""},
		{"select `nextval('a')`", ""},
		{"select 1 -- nextval('a')", ""},
		{"select 1 # nextval('a')", ""},
		{"select 1 /* nextval('a') */", ""},
		{"select 1 /*+ nextval('a') */", ""},
		{"select @nextval, @@nextval", ""},
		{"select xnextval('a'), nextvalx('a'), next_val('a'), $nextval('a'), nextval$('a')", ""},
		{"select \xc3\xa9nextval('a')", ""},
		{"select 1nextval('a')", ""},
		{"with nextval (a) as (select 1) select a from nextval", ""},
		{"call nextval('a')", ""},
		{"create table t (a int default nextval(s))", ""},
		{"create table nextval (a int)", ""},
		{"create trigger t before insert on x for each row set new.id = nextval('a')", ""},
		{"create procedure p() insert into t values (nextval('a'))", ""},
		{"create function nextval(x int) returns int return 1", ""},
		{"create view v as select nextval('a')", ""},
		{"alter table t alter a set default nextval(s)", ""},
		{"select a.last_insert_id()", ""},
		{"select last_insert_id(5)", ""},
		{"select @@global.identity", ""},
		{"select 'a\\\\' 'nextval(\\'a\\')'", ""},
	} {
		st := analyze(c.sql)
		if got := describe(c.sql, st); got != c.want {
			t.Errorf("%q:\n got calls %s\nwant calls %s", c.sql, got, c.want)
		}
	}
}

func TestNextvalIsRefusedWhereItCannotBeGiven(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"select nextval('a')", ""},
		{"select 1 + nextval('a') * 2 as x, 'b' limit 1", ""},
		{"select nextval('a') from dual where 1", ""},
		{"select nextval('a') from dual limit 1", ""},
		{"select nextval('a') union select nextval('a')", ""},
		{"(select nextval('a')) union (select 2)", ""},
		{"select (select nextval('a'))", ""},
		{"select nextval('a') into @a", ""},
		{"select nextval('a') for update", ""},
		{"select extract(year from nextval('a'))", ""},
		{"select (select max(id) from t), nextval('a')", ""},
		{"select 1 from t union select nextval('a')", ""},
		{"insert into t values (nextval('a'))", ""},
		{"insert into t (id, a) values (nextval('a'), (select max(x) from y)), (1, nextval('a') + 1)", ""},
		{"insert high_priority into db.t partition (p0) (a) values (nextval('a'))", ""},
		{"insert into t set a = nextval('a')", ""},
		{"insert into t () value (nextval('a'))", ""},
		{"insert into t values (nextval('a')) as new", ""},
		{"replace low_priority t values (nextval('a'))", ""},
		{"replace into t set id = nextval('a')", ""},
		{"select nextval(db.s)", ""},

		{"select nextval('a') group by 1 with rollup", "NEXTVAL in SELECT ... GROUP BY ... WITH ROLLUP, which repeats values,"},
		{"select (select nextval('a')) from dual group by rollup (1)", "NEXTVAL in SELECT ... GROUP BY ... WITH ROLLUP, which repeats values,"},
		{"select 1 union (select nextval('a') group by 1 with rollup)", "NEXTVAL in SELECT ... GROUP BY ... WITH ROLLUP, which repeats values,"},
		{"insert into t values (nextval('a'), (select max(b) from u group by c limit 1))", ""},
		{"select nextval('a'), (select max(b) from u group by c limit 1)", ""},
		{"select * from t where a = nextval('a')", "NEXTVAL in SELECT ... FROM outside the outermost list, where the server may evaluate it several times,"},
		{"select * from t order by nextval('a')", "NEXTVAL in SELECT ... FROM outside the outermost list, where the server may evaluate it several times,"},
		{"select (select nextval('a')) from t", "NEXTVAL in SELECT ... FROM outside the outermost list, where the server may evaluate it several times,"},
		{"select * from (select nextval('a')) x", "NEXTVAL in SELECT ... FROM outside the outermost list, where the server may evaluate it several times,"},
		{"select 1 union select nextval('a') from t", "NEXTVAL in SELECT ... FROM ... UNION, which compares rows before they have numbers,"},
		{"select (select nextval('a') from t limit 1)", "NEXTVAL in SELECT ... FROM outside the outermost list, where the server may evaluate it several times,"},
		{"select (with recursive r as (select nextval('a')) select * from r)", "NEXTVAL in WITH ... AS, which the server may evaluate several times,"},
		{"insert into t values ((select nextval('a') from x limit 1))", "NEXTVAL in SELECT ... FROM outside the outermost list, where the server may evaluate it several times,"},
		{"insert into t (nextval('a')) values (1)", "NEXTVAL in front of VALUES"},
		{"with x as (select nextval('a')) select * from x", "NEXTVAL in WITH ... AS, which the server may evaluate several times,"},
		{"load data infile 'x' into table t set id = nextval('a')", "NEXTVAL in LOAD DATA"},
		{"select nextval(?), nextval('a', ?), nextval(?, ?)", ""},
		{"select nextval(? + 1)", "NEXTVAL(expression)"},
		{"select nextval('a', ? + 1)", "NEXTVAL with an expression for the count"},
		{"select nextval(@a)", "NEXTVAL(@variable)"},
		{"select nextval(concat('a', 'b'))", "NEXTVAL(expression)"},
		{"select nextval(nextval('a'))", "NEXTVAL(expression)"},
		{"select nextval('a', 1000001)", "NEXTVAL of no numbers, or of more than 1000000,"},
		{"select nextval('a', 0)", "NEXTVAL of no numbers, or of more than 1000000,"},
		{"select nextval('a', 18446744073709551616)", "NEXTVAL of no numbers, or of more than 1000000,"},
		{"select nextval('a', -1)", "NEXTVAL with an expression for the count"},
		{"select nextval('a', 5, 6)", "NEXTVAL with an expression for the count"},
		{"select nextval('a', 5)", ""},
		{"create table t as select nextval('a')", "NEXTVAL in CREATE TABLE"},
		{"create or replace table t (a int) select 1 + nextval(\"a\") x", "NEXTVAL in CREATE TABLE"},
		{"create temporary table if not exists t as select nextval('a')", "NEXTVAL in CREATE TABLE"},
		{"create table t as values (nextval('a'))", "NEXTVAL in CREATE TABLE"},
		{"select nextval('a') or .5from t", "NEXTVAL in SELECT ... FROM outside the outermost list, where the server may evaluate it several times,"},
		{"insert into t set a = 1e5returning nextval('a')", ""},
		{"prepare s from 'select nextval(''a'')'", "NEXTVAL in PREPARE ... FROM"},
		{"prepare s from \"insert into t values (NextVal(x))\"", "NEXTVAL in PREPARE ... FROM"},
		{"execute immediate 'select nextval(x)'", "NEXTVAL in EXECUTE IMMEDIATE"},
		{"begin not atomic select nextval('a'); end", "NEXTVAL in this kind of statement"},
		{"handler t read first where id = nextval('a')", "NEXTVAL in HANDLER"},
		{"select /*!80000 1, */ nextval('a')", "NEXTVAL beside a versioned comment"},
		{"select nextval/*!(*/'a')", "NEXTVAL across a comment's border"},

		{"explain update t set a = nextval('a')", ""},
		{"create table t select nextval(a)", ""},
		{"create table t (a int default nextval(s), b int default (nextval(db.s)))", ""},
		{"create table nextval (nextval int)", ""},
		{"alter table t alter a set default nextval(s)", ""},
		{"update t set nextval = 1", ""},
		{"prepare s from 'select 1'", ""},
		{"prepare s from 'select photos.nextval, ''nextval(x)'' from photos -- nextval(x)'", ""},
		{"prepare s from N'select nextval (x)'", "NEXTVAL in PREPARE ... FROM"},
		{"prepare s from @x", ""},
		{"create trigger t before insert on x for each row begin set new.id = nextval('a'); end; select 1", ""},
	} {
		if got := analyze(c.sql).Refusal; got != c.want {
			t.Errorf("%q: got refusal %q, want %q", c.sql, got, c.want)
		}
	}
}

func TestSelfContainedIsNothingButCalls(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want bool
	}{
		{"select nextval('a')", true},
		{"SELECT NEXTVAL(a) ;", true},
		{"select nextval('a') from dual", true},
		{"select /* x */ nextval('a') /* y */ as `id` -- z", true},
		{"select nextval('a') id", true},
		{"select nextval('a') 'my id'", true},
		{"select nextval('a') as \"my id\", nextval('b') x from dual;;", true},
		{"select last_insert_id()", true},
		{"select last_insert_id() as id", true},
		{"select @@identity", true},
		{"select @@session.last_insert_id x", true},
		{"select connection_id()", true},
		{"select connection_id(), last_insert_id(), nextval('a')", true},
		{"select `last_insert_id`()", true},
		{"set statement max_statement_time=30 for select nextval('a')", true},

		{"set statement sql_select_limit=1 for select nextval('a')", false},
		{"select last_insert_id(); set statement max_statement_time=30 for select nextval('a')", false},
		{"select nextval('a') limit 1", false},
		{"select nextval('a') + 1", false},
		{"select +nextval('a')", false},
		{"select (nextval('a'))", false},
		{"(select nextval('a'))", false},
		{"select distinct nextval('a')", false},
		{"select sql_no_cache nextval('a')", false},
		{"select nextval('a'), 1", false},
		{"select 1, nextval('a')", false},
		{"select nextval('a') from t", false},
		{"select nextval('a') from dual where 1", false},
		{"select nextval('a') union select 2", false},
		{"select nextval('a') into @x", false},
		{"select nextval('a') for update", false},
		{"select nextval('a') where", false},
		{"select nextval('a') from", false},
		{"select nextval('a') as", false},
		{"select nextval('a') as select", false},
		{"select nextval('a') as ''", false},
		{"select nextval('a') as 'x '", false},
		{"select nextval('a') as N'x'", false},
		{"select nextval('a') as 'x' 'y'", false},
		{"select nextval('a') x y", false},
		{"select nextval('a') as @x", false},
		{"select nextval('a') as 5", false},
		{"select nextval('a') as \xc3\xa9", false},
		{"select nextval('\xc3\xa9')", false},
		{"select nextval('a') as `" + strings.Repeat("y", 256) + "`", false},
		{"select nextval(db.s)", true},
		{"select next value for s as x, lastval(s), setval(s, 5)", true},
		{"select a.nextval, b.currval x from dual", true},
		{"select next value from s;", true},
		{"select next 5 values from db.s", true},
		{"select next value for s + 1", false},
		{"select nextval(?)", true},
		{"select nextval(?, ?), setval('s', ?) as x, lastval(?)", true},
		{"select nextval(?), ?", false},
		{"select next ? values from s", true},
		{"select /*! nextval('a') */", false},
		{"select nextval('a'); select 1", false},
		{"select nextval('a'),", false},
		{"select nextval('a'))", false},
		{"select nextval('a'", false},
		{"select", false},
		{"select last_insert_id(5)", false},
		{"select last_insert_id(), ?", false},
		{"select @@ identity", false},
		{"select @@/**/last_insert_id", false},
		{"select @@session . identity", true},
		{"select @@`identity`", true},
		{"select nextval('a') portion", false},
		{"select nextval('a') as sounds", false},
		{"select nextval('a') \\N", false},
		{"select nextval('a') -- \x00", true},
		{"select nextval('a') -- \x00 x", false},
		{"select 1", false},
		{"insert into t values (nextval('a'))", false},
	} {
		st := analyze(c.sql)
		if got := st.SelfContained; got != c.want {
			t.Errorf("%q: got self-contained %v, want %v (%+v)", c.sql, got, c.want, st.Items)
		}
		if st.SelfContained && len(st.Items) != len(st.Calls) {
			t.Errorf("%q: got %d items for %d calls", c.sql, len(st.Items), len(st.Calls))
		}
	}
	const sql = "select NextVal('a') as `x``y`, last_insert_id() b, @@identity"
	st := analyze(sql)
	if len(st.Items) != 3 {
		t.Fatalf("%q: got %d items, want 3", sql, len(st.Items))
	}
	for i, want := range []struct {
		text, column string
		f            Func
	}{{"NextVal('a')", "x`y", Nextval}, {"last_insert_id()", "b", LastInsertID}, {"@@identity", "@@identity", LastInsertIDVariable}} {
		it := st.Items[i]
		if got := sql[it.Start:it.End]; got != want.text {
			t.Errorf("item %d: got text %q, want %q", i, got, want.text)
		}
		if got := string(st.ColumnName([]byte(sql), it)); got != want.column {
			t.Errorf("item %d: got column %q, want %q", i, got, want.column)
		}
		if it.Func != want.f || it.FirstCall != i || it.EndCall != i+1 || st.Calls[i].Item != i {
			t.Errorf("item %d: got func %d, calls [%d,%d), call's item %d", i, it.Func, it.FirstCall, it.EndCall, st.Calls[i].Item)
		}
	}
}

func TestTrimForgetsTheTextAndKeepsWorking(t *testing.T) {
	var st Statement
	big := []byte("insert into t values " + strings.Repeat("(nextval('it''s'), ((((((((((1)))))))))),", 500) + "(1)")
	for range 2 {
		st.Analyze(big, lex.Mode{})
		if got := len(st.Calls); got != 500 {
			t.Fatalf("got %d calls, want 500", got)
		}
		st.Trim()
		if st.Kind != Other || st.Words != 0 || len(st.Calls) != 0 || cap(st.Calls) > 4 || cap(st.levels) > 8 || cap(st.arena) > 64 {
			t.Errorf("got kind %s, %d calls, room for %d calls, %d levels and %d bytes",
				kindNames[st.Kind], len(st.Calls), cap(st.Calls), cap(st.levels), cap(st.arena))
		}
	}
	st.Analyze([]byte("select nextval('a')"), lex.Mode{})
	if !st.SelfContained {
		t.Error("after Trim: not self-contained")
	}
}

func TestDeepAndLongTextsAreReadInLinearTime(t *testing.T) {
	// There is no time limit: anything quadratic would take minutes.
	for name, sql := range map[string]string{
		"deep parentheses":  "select " + strings.Repeat("(", 200000) + "1",
		"nested selects":    strings.Repeat("select connection_id(), x from (", 2000) + strings.Repeat(" ", 1<<20),
		"many calls":        "select " + strings.Repeat("connection_id(),", 100000) + "1 from information_schema.tables",
		"nested nextval":    "select " + strings.Repeat("nextval(1+", 100000),
		"nested setval":     "select " + strings.Repeat("setval(a,", 200000),
		"setval and parens": "select " + strings.Repeat("setval(a,(", 200000),
		"nested groups": "select " + strings.Repeat("(select 1 group by ", 2000) + "nextval('s')" + strings.Repeat(",1", 1<<19) +
			strings.Repeat(")", 2000),
		"open groups":       "select " + strings.Repeat("(select nextval('a') group by ", 200000),
		"sequence columns":  "insert into t select " + strings.Repeat("a.nextval,", 100000),
		"escapes":           "select '" + strings.Repeat("\\'", 1<<20) + "'",
		"doubled quotes":    "select '" + strings.Repeat("''", 1<<20) + "'",
		"comments":          "select " + strings.Repeat("/*!1*/", 200000) + "1",
		"open comments":     "select " + strings.Repeat("/*", 1<<20),
		"statements":        strings.Repeat("select 1;", 200000),
		"create words":      "create " + strings.Repeat("undefined ", 200000),
		"alter words":       "alter " + strings.Repeat("algorithm = ", 200000),
		"sets":              "set " + strings.Repeat("@a = 1, ", 200000) + "@b = 2",
		"flush and strings": "flush " + strings.Repeat("'x' ", 200000),
	} {
		var st Statement
		st.Analyze([]byte(sql), lex.Mode{})
		if st.Kind == Empty {
			t.Errorf("%s: got kind Empty", name)
		}
	}
	var st Statement
	st.Analyze([]byte("insert into t values "+strings.Repeat("(nextval('s')),", 200000)), lex.Mode{})
	for i := range st.Calls {
		if c := &st.Calls[i]; st.CallFrom(c.Start) != c || st.CallFrom(c.Start-1) != nil {
			t.Fatalf("call %d is not found at its place, or also elsewhere", i)
		}
	}
	counted := []byte("insert into t select " + strings.Repeat("nextval('s') abcde,", 50000) + "1 from u order by " + strings.Repeat("x,", 50000) + "y")
	st.Analyze(counted, lex.Mode{})
	if _, refusal := st.Counted(counted); refusal == "" {
		t.Error("fifty thousand names: not refused")
	}
}

func TestTheCallsOfATextAreBounded(t *testing.T) {
	calls := strings.Repeat(", last_insert_id()", maxCalls)
	for _, c := range []struct {
		sql     string
		refused bool
		opaque  bool
	}{
		{"select nextval('a')" + calls[:len(calls)-len(", last_insert_id()")], false, false},
		{"select nextval('a')" + calls, true, false},
		{"select 1" + calls, false, false},
		{"select last_insert_id()" + calls, false, true},
	} {
		st := analyze(c.sql)
		if got := strings.Contains(st.Refusal, "100,000"); got != c.refused {
			t.Errorf("%.40s...: refused %v (%q), want %v", c.sql, got, st.Refusal, c.refused)
		}
		if got := st.Words&Opaque != 0; got != c.opaque {
			t.Errorf("%.40s...: opaque %v, want %v", c.sql, got, c.opaque)
		}
		if len(st.Calls) > maxCalls {
			t.Errorf("%.40s...: got %d calls", c.sql, len(st.Calls))
		}
	}
}

// What is recorded of a text takes a few times its memory, not fifty times.
func TestTheRecordsOfATextAreBounded(t *testing.T) {
	records := func(st *Statement) int {
		return cap(st.Parts) + cap(st.Tables) + cap(st.Assignments) + cap(st.Kills)
	}
	for _, c := range []struct {
		first, piece string
		dense        bool
	}{
		{"", "INSERT INTO a VALUES(1);", false},
		{"", "DELETE FROM a;", false},
		{"", "BEGIN;UPDATE a SET b = 1 WHERE c = 2;COMMIT;", false},
		{"", "UPDATE a SET b=1,c=2;", false},
		{"", "DO;", true},
		{"", "XA;", true},
		{"", "INSERT a;", true},
		{"", "KILL 1;", true},
		{"SET ", "@,", true},
		{"SET ", "x=,", true},
		{"SELECT NEXTVAL('a');", "DO;", true},
		{"SELECT NEXTVAL('a');SET ", "@,", true},
		{"SELECT NEXTVAL('a');", "INSERT a;", true},
	} {
		n := 100_000
		if c.dense {
			n = 60_000
		}
		sql := []byte(c.first + strings.Repeat(c.piece, n))
		var st Statement
		st.Analyze(sql, lex.Mode{})
		refused := strings.Contains(st.Refusal, "statements or assignments")
		if c.dense != (st.Words&Opaque != 0) || refused != (c.dense && strings.Contains(c.first, "NEXTVAL")) {
			t.Errorf("%s: got %q and %s, want dense %v", c.piece, st.Refusal, st.Words.names(), c.dense)
		}
		if brings := st.Words&MayBringRows != 0; brings != (c.piece == "INSERT a;") {
			t.Errorf("%s: may bring rows: %v", c.piece, brings)
		}
		if n := records(&st); c.dense && n > 2*(leastRecords+len(sql)/textOfRecord) {
			t.Errorf("%s: room for %d records of %d bytes of text", c.piece, n, len(sql))
		}
		if n := records(&st); c.dense && !refused && n > 10 {
			t.Errorf("%s: %d records stay, though nobody may look at them", c.piece, n)
		}
		st.ReadsOfLast()
	}
}

// A text without these words is not searched.
func TestTextsThatMayLookForSequencesHaveAWordForIt(t *testing.T) {
	for sql, want := range map[string]Words{
		"SELECT minimum_value FROM s":                      LooksForSequences,
		"SELECT `next_not_cached_value` FROM s":            LooksForSequences,
		"SHOW FULL TABLES":                                 LooksForSequences,
		"SELECT TABLE_TYPE FROM information_schema.TABLES": SystemSchema,
		"INSERT INTO t (minimum_value) VALUES (1)":         0,
		"UPDATE t SET `next_not_cached_value` = 1":         0,
		"SHOW TABLES":                   0,
		"SHOW FULL COLUMNS FROM t":      0,
		"SELECT 'minimum_value' FROM s": 0,
	} {
		var st Statement
		st.Analyze([]byte(sql), lex.Mode{})
		if got := st.Words & (LooksForSequences | SystemSchema); got != want {
			t.Errorf("%s: got %v, want %v", sql, got, want)
		}
		if plain := want == 0; st.Plain() != plain {
			t.Errorf("%s: plain is %t, want %t", sql, !plain, plain)
		}
	}
}
