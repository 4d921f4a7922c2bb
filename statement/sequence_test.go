package statement

import (
	"bytes"
	"reflect"
	"testing"
)

func TestSequenceStatementsAreRead(t *testing.T) {
	type ddl = SequenceDDL
	n := func(v uint64) SequenceNumber { return SequenceNumber{Given: true, Value: v} }
	none := SequenceNumber{Default: true}
	b := func(s string) []byte { return []byte(s) }
	for _, c := range []struct {
		sql   string
		kind  Kind
		names string
		want  ddl
	}{
		{"create sequence photos", CreateSequence, "photos", ddl{}},
		{"CREATE SEQUENCE IF NOT EXISTS 'photos' START WITH 5 CACHE 10;", CreateSequence, "photos", ddl{IfExists: true, Start: n(5), Cache: n(10)}},
		{"create sequence `p``q` cache=10 start=5", CreateSequence, "p`q", ddl{Start: n(5), Cache: n(10)}},
		{"create sequence \"a\" start 1", CreateSequence, "a", ddl{Start: n(1)}},
		{"create sequence a start with +7", CreateSequence, "a", ddl{Start: n(7)}},
		{"create sequence a start with 18446744073709551615", CreateSequence, "a", ddl{Start: n(1<<64 - 1)}},
		{"create sequence a start 0 cache 0", CreateSequence, "a", ddl{Start: n(0), Cache: n(0)}},
		{"create sequence db.a", CreateSequence, "db.a", ddl{}},
		{"create sequence if", CreateSequence, "if", ddl{}},
		{"create sequence start start 5", CreateSequence, "start", ddl{Start: n(5)}},
		{"create or replace sequence a", CreateSequence, "a", ddl{OrReplace: true}},
		{"create or replace sequence if not exists a", CreateSequence, "a", ddl{OrReplace: true, IfExists: true}},
		{"create sequence a increment by 2 minvalue 3 maxvalue 99 start 4 nocache cycle comment 'it''s'", CreateSequence, "a", ddl{
			Increment: n(2), Min: n(3), Max: n(99), Start: n(4), Cache: n(0), Cycle: Yes, HasComment: true, Comment: b("it's"),
		}},
		{"create sequence a increment=2 minvalue=3 maxvalue=99 start=4 cache=5 nocycle engine=InnoDB comment=''", CreateSequence, "a", ddl{
			Increment: n(2), Min: n(3), Max: n(99), Start: n(4), Cache: n(5), Cycle: No, HasComment: true, Comment: b(""),
		}},
		{"create sequence a no minvalue no maxvalue no cache no cycle no order no json_safe", CreateSequence, "a", ddl{
			Min: none, Max: none, Cache: n(0), Cycle: No, JSONSafe: No, Order: No,
		}},
		{"create sequence a nominvalue nomaxvalue noorder cache default JSON_SAFE", CreateSequence, "a", ddl{Min: none, Max: none, Cache: none, JSONSafe: Yes, Order: No}},
		{"create sequence a outage_cover 60", CreateSequence, "a", ddl{Cover: n(60)}},
		{"alter sequence a outage_cover=60 start 5", AlterSequence, "a", ddl{Cover: n(60), Start: n(5)}},
		{"alter sequence a OUTAGE_COVER DEFAULT", AlterSequence, "a", ddl{Cover: none}},
		{"create sequence a outage_cover 0", CreateSequence, "a", ddl{Cover: n(0), Unsupported: "OUTAGE_COVER 0, for which there is CACHE n,"}},
		{"create sequence a outage_cover 1 outage_cover default", CreateSequence, "a", ddl{Cover: none, Twice: "OUTAGE_COVER"}},
		{"create sequence a outage_cover '1 min'", CreateSequence, "a", ddl{Problem: "OUTAGE_COVER needs a whole number"}},
		{"create sequence a as int unsigned start 7", CreateSequence, "a", ddl{TypeMax: 1<<32 - 1, Start: n(7)}},
		{"create sequence a as bigint", CreateSequence, "a", ddl{TypeMax: 1<<63 - 1}},
		{"create sequence a as TINYINT signed", CreateSequence, "a", ddl{TypeMax: 127}},
		{"create sequence a owned by photos.id", CreateSequence, "a", ddl{HasOwner: true, OwnerTable: b("photos"), OwnerColumn: b("id")}},
		{"create sequence a owned by `my db` . `t` . `c` start 5", CreateSequence, "a", ddl{HasOwner: true, OwnerSchema: b("my db"), OwnerTable: b("t"), OwnerColumn: b("c"), Start: n(5)}},
		{"create sequence a owned by none.id", CreateSequence, "a", ddl{HasOwner: true, OwnerTable: b("none"), OwnerColumn: b("id")}},

		{"create temporary sequence a", CreateSequence, "a", ddl{Unsupported: "TEMPORARY"}},
		{"create sequence a order", CreateSequence, "a", ddl{Order: Yes}},
		{"alter sequence a ORDER nocache", AlterSequence, "a", ddl{Order: Yes, Cache: n(0)}},
		{"alter sequence a order no order", AlterSequence, "a", ddl{Order: No, Twice: "ORDER"}},
		{"create sequence a increment by -2", CreateSequence, "a", ddl{Unsupported: "INCREMENT with a negative number"}},
		{"create sequence a increment 0 start 1", CreateSequence, "a", ddl{Increment: n(0), Start: n(1), Unsupported: "INCREMENT 0, by which numbers follow auto_increment_increment,"}},
		{"create sequence a minvalue 0", CreateSequence, "a", ddl{Min: n(0), Unsupported: "MINVALUE 0, as 0 is no key,"}},
		{"create sequence a start with -5", CreateSequence, "a", ddl{Unsupported: "START with a negative number"}},
		{"create sequence a cache -1", CreateSequence, "a", ddl{Unsupported: "CACHE with a negative number"}},
		{"create sequence a engine=aria", CreateSequence, "a", ddl{Unsupported: "an ENGINE other than InnoDB"}},

		{"create sequence a cache 1 cache 2", CreateSequence, "a", ddl{Cache: n(2), Twice: "CACHE"}},
		{"create sequence a nocache cache default", CreateSequence, "a", ddl{Cache: none, Twice: "CACHE"}},
		{"create sequence a cycle nocycle", CreateSequence, "a", ddl{Cycle: No, Twice: "CYCLE"}},
		{"create sequence a minvalue 1 no minvalue", CreateSequence, "a", ddl{Min: none, Twice: "MINVALUE"}},
		{"create sequence a as int as bigint", CreateSequence, "a", ddl{TypeMax: 1<<63 - 1, Twice: "AS"}},
		{"create sequence a owned by none owned by t.c", CreateSequence, "a", ddl{HasOwner: true, OwnerTable: b("t"), OwnerColumn: b("c"), Twice: "OWNED BY"}},

		{"create sequence", CreateSequence, "", ddl{Problem: "a sequence name is missing"}},
		{"create sequence 5", CreateSequence, "", ddl{Problem: "a sequence name is missing"}},
		{"create sequence a no sense", CreateSequence, "a", ddl{Problem: "unknown option"}},
		{"create sequence a comment 5", CreateSequence, "a", ddl{Problem: "unknown option"}},
		{"create sequence a comment x", CreateSequence, "a", ddl{Problem: "unknown option"}},
		{"create sequence a increment by x", CreateSequence, "a", ddl{Problem: "INCREMENT needs a whole number"}},
		{"create sequence a increment by - x", CreateSequence, "a", ddl{Unsupported: "INCREMENT with a negative number", Problem: "unknown option"}},
		{"create sequence a restart with 5", CreateSequence, "a", ddl{Restart: true, RestartWith: n(5), Problem: "RESTART, which is an option of ALTER SEQUENCE"}},
		{"create sequence a as varchar", CreateSequence, "a", ddl{Problem: "unknown option"}},
		{"create sequence a start", CreateSequence, "a", ddl{Problem: "START needs a whole number"}},
		{"create sequence a start with 5.5", CreateSequence, "a", ddl{Problem: "START needs a whole number"}},
		{"create sequence a start with '5'", CreateSequence, "a", ddl{Problem: "START needs a whole number"}},
		{"create sequence a start with ?", CreateSequence, "a", ddl{Problem: "START needs a whole number"}},
		{"create sequence a start with 18446744073709551616", CreateSequence, "a", ddl{Problem: "START needs a whole number"}},
		{"create sequence a, b", CreateSequence, "a", ddl{Problem: "unknown option"}},
		{"create sequence a frobnicate", CreateSequence, "a", ddl{Problem: "unknown option"}},
		{"create sequence a owned by t", CreateSequence, "a", ddl{HasOwner: true, Problem: "OWNED BY needs a table and a column"}},
		{"create sequence a owned by a.b.c.d", CreateSequence, "a", ddl{HasOwner: true, Problem: "unknown option"}},
		{"create sequence a owned t.c", CreateSequence, "a", ddl{Problem: "unknown option"}},

		{"alter sequence a restart", AlterSequence, "a", ddl{Restart: true}},
		{"alter sequence if exists db.a restart with 5 force", AlterSequence, "db.a", ddl{IfExists: true, Restart: true, RestartWith: n(5), Force: true}},
		{"alter sequence a restart = 5 cache 2", AlterSequence, "a", ddl{Restart: true, RestartWith: n(5), Cache: n(2)}},
		{"alter sequence a restart 5", AlterSequence, "a", ddl{Restart: true, RestartWith: n(5)}},
		{"alter sequence a restart force", AlterSequence, "a", ddl{Restart: true, Force: true}},
		{"alter sequence a restart cycle", AlterSequence, "a", ddl{Restart: true, Cycle: Yes}},
		{"alter sequence a owned by none maxvalue 7", AlterSequence, "a", ddl{HasOwner: true, Max: n(7)}},
		{"alter sequence a restart restart 5", AlterSequence, "a", ddl{Restart: true, RestartWith: n(5), Twice: "RESTART"}},
		{"alter sequence a restart with", AlterSequence, "a", ddl{Restart: true, Problem: "RESTART needs a whole number"}},
		{"alter sequence a restart -5", AlterSequence, "a", ddl{Restart: true, Unsupported: "RESTART with a negative number"}},
		{"alter sequence a force", AlterSequence, "a", ddl{Problem: "unknown option"}},
		{"alter sequence a", AlterSequence, "a", ddl{Problem: "nothing to alter"}},
		{"alter sequence", AlterSequence, "", ddl{Problem: "a sequence name is missing"}},

		{"drop sequence a", DropSequence, "a", ddl{}},
		{"DROP SEQUENCE IF EXISTS a, `b c`, 'd';", DropSequence, "a|b c|d", ddl{IfExists: true}},
		{"drop temporary sequence a", DropSequence, "a", ddl{Unsupported: "TEMPORARY"}},
		{"drop sequence db.a", DropSequence, "db.a", ddl{}},
		{"drop sequence", DropSequence, "", ddl{Problem: "a sequence name is missing"}},
		{"drop sequence a,", DropSequence, "a", ddl{Problem: "a sequence name is missing"}},
		{"drop sequence a b", DropSequence, "a", ddl{Problem: "more than names"}},

		{"show create sequence a", ShowCreateSequence, "a", ddl{}},
		{"show create sequence a, b", ShowCreateSequence, "a|b", ddl{Problem: "more than one name"}},
		{"show create sequence", ShowCreateSequence, "", ddl{Problem: "a sequence name is missing"}},
		{"show sequences", ShowSequences, "", ddl{}},
		{"show sequences like 'ph\\_%'", ShowSequences, "", ddl{HasPattern: true, Pattern: b("ph\\_%")}},
		{"show sequences like photos", ShowSequences, "", ddl{Problem: "LIKE needs a string"}},
		{"show sequences like 'a' b", ShowSequences, "", ddl{HasPattern: true, Pattern: b("a"), Problem: "more than the statement"}},
		{"show sequences where name = 'a'", ShowSequences, "", ddl{Unsupported: "SHOW SEQUENCES WHERE"}},
		{"show sequences from db", ShowSequences, "", ddl{Unsupported: "SHOW SEQUENCES FROM a schema"}},
		{"show sequences x", ShowSequences, "", ddl{Problem: "more than the statement"}},
		{"flush sequences", FlushSequences, "", ddl{}},
		{"flush sequences a, 'b'", FlushSequences, "a|b", ddl{}},
		{"flush sequences a b", FlushSequences, "a", ddl{Problem: "more than names"}},
		{"check sequence a, b", CheckSequence, "a|b", ddl{}},
		{"check sequence", CheckSequence, "", ddl{Problem: "a sequence name is missing"}},
		{"repair sequence a", RepairSequence, "a", ddl{}},
		{"repair sequence a, b", RepairSequence, "a|b", ddl{Problem: "more than one name"}},
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

// What is a server's stays a server's.
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
