package statement

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"seqproxy/statement/ddl"
)

func TestSequenceStatementsAreRead(t *testing.T) {
	type seq = ddl.Sequence
	n := func(v uint64) ddl.Number { return ddl.Number{Given: true, Value: v} }
	none := ddl.Number{Default: true}
	b := func(s string) []byte { return []byte(s) }
	for _, c := range []struct {
		sql   string
		kind  Kind
		names string
		want  seq
	}{
		{"create sequence photos", CreateSequence, "photos", seq{}},
		{"CREATE SEQUENCE IF NOT EXISTS 'photos' START WITH 5 CACHE 10;", CreateSequence, "photos", seq{IfExists: true, Start: n(5), Cache: n(10)}},
		{"create sequence `p``q` cache=10 start=5", CreateSequence, "p`q", seq{Start: n(5), Cache: n(10)}},
		{"create sequence \"a\" start 1", CreateSequence, "a", seq{Start: n(1)}},
		{"create sequence a start with +7", CreateSequence, "a", seq{Start: n(7)}},
		{"create sequence a start with 18446744073709551615", CreateSequence, "a", seq{Start: n(1<<64 - 1)}},
		{"create sequence a start 0 cache 0", CreateSequence, "a", seq{Start: n(0), Cache: n(0)}},
		{"create sequence db.a", CreateSequence, "db.a", seq{}},
		{"create sequence if", CreateSequence, "if", seq{}},
		{"create sequence start start 5", CreateSequence, "start", seq{Start: n(5)}},
		{"create or replace sequence a", CreateSequence, "a", seq{OrReplace: true}},
		{"create or replace sequence if not exists a", CreateSequence, "a", seq{OrReplace: true, IfExists: true}},
		{"create sequence a increment by 2 minvalue 3 maxvalue 99 start 4 nocache cycle comment 'it''s'", CreateSequence, "a", seq{
			Increment: n(2), Min: n(3), Max: n(99), Start: n(4), Cache: n(0), Cycle: ddl.Yes, HasComment: true, Comment: b("it's"),
		}},
		{"create sequence a increment=2 minvalue=3 maxvalue=99 start=4 cache=5 nocycle engine=InnoDB comment=''", CreateSequence, "a", seq{
			Increment: n(2), Min: n(3), Max: n(99), Start: n(4), Cache: n(5), Cycle: ddl.No, HasComment: true, Comment: b(""),
		}},
		{"create sequence a no minvalue no maxvalue no cache no cycle no order no json_safe", CreateSequence, "a", seq{
			Min: none, Max: none, Cache: n(0), Cycle: ddl.No, JSONSafe: ddl.No, Order: ddl.No,
		}},
		{"create sequence a nominvalue nomaxvalue noorder cache default JSON_SAFE", CreateSequence, "a", seq{Min: none, Max: none, Cache: none, JSONSafe: ddl.Yes, Order: ddl.No}},
		{"create sequence a outage_cover 60", CreateSequence, "a", seq{Cover: n(60)}},
		{"alter sequence a outage_cover=60 start 5", AlterSequence, "a", seq{Cover: n(60), Start: n(5)}},
		{"alter sequence a OUTAGE_COVER DEFAULT", AlterSequence, "a", seq{Cover: none}},
		{"create sequence a outage_cover 0", CreateSequence, "a", seq{Cover: n(0), Unsupported: "OUTAGE_COVER 0", WayOut: "say CACHE n instead"}},
		{"create sequence a outage_cover 1 outage_cover default", CreateSequence, "a", seq{Cover: none, Twice: "OUTAGE_COVER"}},
		{"create sequence a outage_cover '1 min'", CreateSequence, "a", seq{Problem: "OUTAGE_COVER needs a whole number"}},
		{"create sequence a as int unsigned start 7", CreateSequence, "a", seq{TypeMax: 1<<32 - 1, Start: n(7)}},
		{"create sequence a as bigint", CreateSequence, "a", seq{TypeMax: 1<<63 - 1}},
		{"create sequence a as TINYINT signed", CreateSequence, "a", seq{TypeMax: 127}},
		{"create sequence a owned by photos.id", CreateSequence, "a", seq{HasOwner: true, OwnerTable: b("photos"), OwnerColumn: b("id")}},
		{"create sequence a owned by `my db` . `t` . `c` start 5", CreateSequence, "a", seq{HasOwner: true, OwnerSchema: b("my db"), OwnerTable: b("t"), OwnerColumn: b("c"), Start: n(5)}},
		{"create sequence a owned by none.id", CreateSequence, "a", seq{HasOwner: true, OwnerTable: b("none"), OwnerColumn: b("id")}},

		{"create temporary sequence a", CreateSequence, "a", seq{Unsupported: "TEMPORARY"}},
		{"create sequence a order", CreateSequence, "a", seq{Order: ddl.Yes}},
		{"alter sequence a ORDER nocache", AlterSequence, "a", seq{Order: ddl.Yes, Cache: n(0)}},
		{"alter sequence a order no order", AlterSequence, "a", seq{Order: ddl.No, Twice: "ORDER"}},
		{"create sequence a increment by -2", CreateSequence, "a", seq{Unsupported: "INCREMENT with a negative number"}},
		{"create sequence a increment 0 start 1", CreateSequence, "a", seq{Increment: n(0), Start: n(1), Unsupported: "INCREMENT 0", WayOut: "by it numbers would follow auto_increment_increment; want 1 or more"}},
		{"create sequence a minvalue 0", CreateSequence, "a", seq{Min: n(0), Unsupported: "MINVALUE 0", WayOut: "0 is no key; want 1 or more"}},
		{"create sequence a start with -5", CreateSequence, "a", seq{Unsupported: "START with a negative number"}},
		{"create sequence a cache -1", CreateSequence, "a", seq{Unsupported: "CACHE with a negative number"}},
		{"create sequence a engine=aria", CreateSequence, "a", seq{Unsupported: "an ENGINE other than InnoDB"}},

		{"create sequence a cache 1 cache 2", CreateSequence, "a", seq{Cache: n(2), Twice: "CACHE"}},
		{"create sequence a nocache cache default", CreateSequence, "a", seq{Cache: none, Twice: "CACHE"}},
		{"create sequence a cycle nocycle", CreateSequence, "a", seq{Cycle: ddl.No, Twice: "CYCLE"}},
		{"create sequence a minvalue 1 no minvalue", CreateSequence, "a", seq{Min: none, Twice: "MINVALUE"}},
		{"create sequence a as int as bigint", CreateSequence, "a", seq{TypeMax: 1<<63 - 1, Twice: "AS"}},
		{"create sequence a owned by none owned by t.c", CreateSequence, "a", seq{HasOwner: true, OwnerTable: b("t"), OwnerColumn: b("c"), Twice: "OWNED BY"}},

		{"create sequence", CreateSequence, "", seq{Problem: "a sequence name is missing"}},
		{"create sequence 5", CreateSequence, "", seq{Problem: "a sequence name is missing"}},
		{"create sequence a no sense", CreateSequence, "a", seq{Problem: "unknown option"}},
		{"create sequence a comment 5", CreateSequence, "a", seq{Problem: "unknown option"}},
		{"create sequence a comment x", CreateSequence, "a", seq{Problem: "unknown option"}},
		{"create sequence a increment by x", CreateSequence, "a", seq{Problem: "INCREMENT needs a whole number"}},
		{"create sequence a increment by - x", CreateSequence, "a", seq{Unsupported: "INCREMENT with a negative number", Problem: "unknown option"}},
		{"create sequence a restart with 5", CreateSequence, "a", seq{Restart: true, RestartWith: n(5), Problem: "RESTART, which is an option of ALTER SEQUENCE"}},
		{"create sequence a as varchar", CreateSequence, "a", seq{Problem: "unknown option"}},
		{"create sequence a start", CreateSequence, "a", seq{Problem: "START needs a whole number"}},
		{"create sequence a start with 5.5", CreateSequence, "a", seq{Problem: "START needs a whole number"}},
		{"create sequence a start with '5'", CreateSequence, "a", seq{Problem: "START needs a whole number"}},
		{"create sequence a start with ?", CreateSequence, "a", seq{Problem: "START needs a whole number"}},
		{"create sequence a start with 18446744073709551616", CreateSequence, "a", seq{Problem: "START needs a whole number"}},
		{"create sequence a, b", CreateSequence, "a", seq{Problem: "unknown option"}},
		{"create sequence a frobnicate", CreateSequence, "a", seq{Problem: "unknown option"}},
		{"create sequence a owned by t", CreateSequence, "a", seq{HasOwner: true, Problem: "OWNED BY needs a table and a column"}},
		{"create sequence a owned by a.b.c.d", CreateSequence, "a", seq{HasOwner: true, Problem: "unknown option"}},
		{"create sequence a owned t.c", CreateSequence, "a", seq{Problem: "unknown option"}},

		{"alter sequence a restart", AlterSequence, "a", seq{Restart: true}},
		{"alter sequence if exists db.a restart with 5 force", AlterSequence, "db.a", seq{IfExists: true, Restart: true, RestartWith: n(5), Force: true}},
		{"alter sequence a restart = 5 cache 2", AlterSequence, "a", seq{Restart: true, RestartWith: n(5), Cache: n(2)}},
		{"alter sequence a restart 5", AlterSequence, "a", seq{Restart: true, RestartWith: n(5)}},
		{"alter sequence a restart force", AlterSequence, "a", seq{Restart: true, Force: true}},
		{"alter sequence a restart cycle", AlterSequence, "a", seq{Restart: true, Cycle: ddl.Yes}},
		{"alter sequence a owned by none maxvalue 7", AlterSequence, "a", seq{HasOwner: true, Max: n(7)}},
		{"alter sequence a restart restart 5", AlterSequence, "a", seq{Restart: true, RestartWith: n(5), Twice: "RESTART"}},
		{"alter sequence a restart with", AlterSequence, "a", seq{Restart: true, Problem: "RESTART needs a whole number"}},
		{"alter sequence a restart -5", AlterSequence, "a", seq{Restart: true, Unsupported: "RESTART with a negative number"}},
		{"alter sequence a force", AlterSequence, "a", seq{Problem: "unknown option"}},
		{"alter sequence a", AlterSequence, "a", seq{Problem: "nothing to alter"}},
		{"alter sequence", AlterSequence, "", seq{Problem: "a sequence name is missing"}},

		{"drop sequence a", DropSequence, "a", seq{}},
		{"DROP SEQUENCE IF EXISTS a, `b c`, 'd';", DropSequence, "a|b c|d", seq{IfExists: true}},
		{"drop temporary sequence a", DropSequence, "a", seq{Unsupported: "TEMPORARY"}},
		{"drop sequence db.a", DropSequence, "db.a", seq{}},
		{"drop sequence", DropSequence, "", seq{Problem: "a sequence name is missing"}},
		{"drop sequence a,", DropSequence, "a", seq{Problem: "a sequence name is missing"}},
		{"drop sequence a b", DropSequence, "a", seq{Problem: "more than names"}},

		{"show create sequence a", ShowCreateSequence, "a", seq{}},
		{"show create sequence a, b", ShowCreateSequence, "a|b", seq{Problem: "more than one name"}},
		{"show create sequence", ShowCreateSequence, "", seq{Problem: "a sequence name is missing"}},
		{"show sequences", ShowSequences, "", seq{}},
		{"show sequences like 'ph\\_%'", ShowSequences, "", seq{HasPattern: true, Pattern: b("ph\\_%")}},
		{"show sequences like photos", ShowSequences, "", seq{Problem: "LIKE needs a string"}},
		{"show sequences like 'a' b", ShowSequences, "", seq{HasPattern: true, Pattern: b("a"), Problem: "more than the statement"}},
		{"show sequences where name = 'a'", ShowSequences, "", seq{Unsupported: "SHOW SEQUENCES WHERE"}},
		{"show sequences from db", ShowSequences, "", seq{Unsupported: "SHOW SEQUENCES FROM a schema"}},
		{"show sequences x", ShowSequences, "", seq{Problem: "more than the statement"}},
		{"flush sequences", FlushSequences, "", seq{}},
		{"flush sequences a, 'b'", FlushSequences, "a|b", seq{}},
		{"flush sequences a b", FlushSequences, "a", seq{Problem: "more than names"}},
		{"check sequence a, b", CheckSequence, "a|b", seq{}},
		{"check sequence", CheckSequence, "", seq{Problem: "a sequence name is missing"}},
		{"repair sequence a", RepairSequence, "a", seq{}},
		{"repair sequence a, b", RepairSequence, "a|b", seq{Problem: "more than one name"}},
	} {
		st := analyze(c.sql)
		got := *st.Sequence
		if st.Kind != c.kind || !st.AboutSequences() {
			t.Errorf("%q: got kind %s, want %s", c.sql, kindNames[st.Kind], kindNames[c.kind])
		}
		if names := string(bytes.Join(got.Names, []byte("|"))); names != c.names {
			t.Errorf("%q: got names %q, want %q", c.sql, names, c.names)
		}
		got.Names, got.Schemas = nil, nil
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q:\n got %+v\nwant %+v", c.sql, got, c.want)
		}
		if words := st.Words &^ TemporaryTable; words != SequenceStatement {
			t.Errorf("%q: got words %b, want SequenceStatement alone", c.sql, words)
		}
		if last := c.sql[len(c.sql)-1]; last == ';' {
			continue
		}
		for _, sql := range []string{c.sql + "; select 1", "select 1; " + c.sql} {
			if st := analyze(sql); st.Kind != Multi || st.Words&SequenceStatement == 0 {
				t.Errorf("%q: got kind %s and words %b, want Multi with SequenceStatement", sql, kindNames[st.Kind], st.Words)
			}
		}
	}
}

// Statements for the server stay with the server.
// A name takes sixteen times the memory of its text.
func TestTheNamesOfAStatementAreBounded(t *testing.T) {
	for names, want := range map[int]string{10_000: "", 10_001: "more than 10,000 names", 50_000: "more than 10,000 names"} {
		st := analyze("drop sequence a" + strings.Repeat(",a", names-1))
		if st.Sequence.Problem != want || cap(st.Sequence.Names) > 20_000 {
			t.Errorf("%d names: got %q and room for %d", names, st.Sequence.Problem, cap(st.Sequence.Names))
		}
	}
}

func TestStatementsThatOnlySoundLikeSequences(t *testing.T) {
	for sql, want := range map[string]Kind{
		"show create table sequence":     Show,
		"show create table sequences":    Show,
		"show tables like 'sequences'":   Show,
		"check table sequence":           OtherDDL,
		"repair table sequence":          OtherDDL,
		"repair local table sequence":    OtherDDL,
		"flush tables sequences":         Flush,
		"flush local sequences":          Flush,
		"alter table sequence add a int": OtherDDL,
		"drop table sequence":            OtherDDL,
		"truncate sequence":              OtherDDL,
		"cache index sequence in x":      OtherDDL,
	} {
		if st := analyze(sql); st.Kind != want || st.AboutSequences() || st.Words&SequenceStatement != 0 {
			t.Errorf("%q: got kind %s, want %s", sql, kindNames[st.Kind], kindNames[want])
		}
	}
}
