package statement

import (
	"bytes"
	"testing"
)

func TestSequenceStatementsAreRead(t *testing.T) {
	type ddl = SequenceDDL
	for _, c := range []struct {
		sql   string
		names string
		want  ddl
	}{
		{"create sequence photos", "photos", ddl{}},
		{"CREATE SEQUENCE IF NOT EXISTS 'photos' START WITH 5 CACHE 10;", "photos", ddl{IfExists: true, HasStart: true, Start: 5, HasCache: true, Cache: 10}},
		{"create sequence `p``q` cache=10 start=5", "p`q", ddl{HasStart: true, Start: 5, HasCache: true, Cache: 10}},
		{"create sequence \"a\" start 1", "a", ddl{HasStart: true, Start: 1}},
		{"create sequence a start with +7", "a", ddl{HasStart: true, Start: 7}},
		{"create sequence a start with 18446744073709551615", "a", ddl{HasStart: true, Start: 1<<64 - 1}},
		{"create sequence a cache 0", "a", ddl{HasCache: true}},
		{"create sequence db.a", "db.a", ddl{}},
		{"create sequence if", "if", ddl{}},
		{"create sequence start start 5", "start", ddl{HasStart: true, Start: 5}},
		{"create or replace sequence a", "a", ddl{Unsupported: "OR REPLACE"}},
		{"create temporary sequence a", "a", ddl{Unsupported: "TEMPORARY"}},
		{"create sequence a increment by 2 cache 3", "a", ddl{HasCache: true, Cache: 3, Unsupported: "INCREMENT"}},
		{"create sequence a increment = -2", "a", ddl{Unsupported: "INCREMENT"}},
		{"create sequence a minvalue 1", "a", ddl{Unsupported: "MINVALUE"}},
		{"create sequence a maxvalue = 100", "a", ddl{Unsupported: "MAXVALUE"}},
		{"create sequence a no maxvalue", "a", ddl{Unsupported: "NO MAXVALUE"}},
		{"create sequence a nocache", "a", ddl{Unsupported: "NOCACHE"}},
		{"create sequence a no cache", "a", ddl{Unsupported: "NO CACHE"}},
		{"create sequence a no minvalue no cycle", "a", ddl{Unsupported: "NO MINVALUE"}},
		{"create sequence a no order", "a", ddl{Unsupported: "NO ORDER"}},
		{"create sequence a nominvalue nomaxvalue", "a", ddl{Unsupported: "NOMINVALUE"}},
		{"create sequence a noorder", "a", ddl{Unsupported: "NOORDER"}},
		{"create sequence a comment 'x'", "a", ddl{Unsupported: "COMMENT"}},
		{"create sequence a no sense", "a", ddl{Problem: "unknown option"}},
		{"create sequence a comment 5", "a", ddl{Unsupported: "COMMENT", Problem: "unknown option"}},
		{"create sequence a increment by x", "a", ddl{Unsupported: "INCREMENT", Problem: "unknown option"}},
		{"create sequence a cycle", "a", ddl{Unsupported: "CYCLE"}},
		{"create sequence a nocycle start 5", "a", ddl{HasStart: true, Start: 5, Unsupported: "NOCYCLE"}},
		{"create sequence a order", "a", ddl{Unsupported: "ORDER"}},
		{"create sequence a restart with 5", "a", ddl{Unsupported: "RESTART"}},
		{"create sequence a as bigint unsigned", "a", ddl{Unsupported: "AS"}},
		{"create sequence a engine=innodb comment='x'", "a", ddl{Unsupported: "ENGINE"}},

		{"create sequence", "", ddl{Problem: "a sequence name is missing"}},
		{"create sequence 5", "", ddl{Problem: "a sequence name is missing"}},
		{"create sequence a start", "a", ddl{Problem: "START needs a whole number"}},
		{"create sequence a start with 5.5", "a", ddl{Problem: "START needs a whole number"}},
		{"create sequence a start with '5'", "a", ddl{Problem: "START needs a whole number"}},
		{"create sequence a start with 18446744073709551616", "a", ddl{Problem: "START needs a whole number"}},
		{"create sequence a start with -5", "a", ddl{Problem: "START must not be negative"}},
		{"create sequence a cache -1", "a", ddl{Problem: "CACHE must not be negative"}},
		{"create sequence a cache 1 cache 2", "a", ddl{HasCache: true, Cache: 2, Problem: "CACHE is given twice"}},
		{"create sequence a, b", "a", ddl{Problem: "unknown option"}},
		{"create sequence a frobnicate", "a", ddl{Problem: "unknown option"}},

		{"drop sequence a", "a", ddl{}},
		{"DROP SEQUENCE IF EXISTS a, `b c`, 'd';", "a|b c|d", ddl{IfExists: true}},
		{"drop temporary sequence a", "a", ddl{Unsupported: "TEMPORARY"}},
		{"drop sequence db.a", "db.a", ddl{}},
		{"drop sequence", "", ddl{Problem: "a sequence name is missing"}},
		{"drop sequence a,", "a", ddl{Problem: "a sequence name is missing"}},
		{"drop sequence a b", "a", ddl{Problem: "more than names"}},
	} {
		st := analyze(c.sql)
		got := st.Sequence
		if names := string(bytes.Join(got.Names, []byte("|"))); names != c.names {
			t.Errorf("%q: got names %q, want %q", c.sql, names, c.names)
		}
		got.Names = nil
		if got.IfExists != c.want.IfExists || got.HasStart != c.want.HasStart || got.Start != c.want.Start ||
			got.HasCache != c.want.HasCache || got.Cache != c.want.Cache || got.Unsupported != c.want.Unsupported ||
			got.Problem != c.want.Problem {
			t.Errorf("%q:\n got %+v\nwant %+v", c.sql, got, c.want)
		}
	}
	for _, sql := range []string{"create sequence a; select 1", "drop sequence a; select 1"} {
		if got := analyze(sql).Kind; got != Multi {
			t.Errorf("%q: got kind %s, want Multi", sql, kindNames[got])
		}
	}
}
