package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updatePage = flag.Bool("update", false, "write the figures into docs/performance.md")

// published are the figures of docs/performance.md: medians, with the least and the greatest.
var published = []struct{ workload, figure, what, measured string }{
	{"select1_c16pin", "CPU vs HAProxy", "SELECT 1, 16 connections, one CPU", "1.17 (1.14-1.21)"},
	{"point_text_c16pin", "CPU vs HAProxy", "point SELECT as text, one CPU", "1.15 (1.10-1.21)"},
	{"pipeline_c4pin", "CPU vs HAProxy", "16 statements in one write", "1.04 (0.99-1.08)"},
	{"connect_c8pin", "CPU vs HAProxy", "connect, log in, SELECT 1, quit", "1.61 (1.55-1.67)"},
	{"connect_c8pin", "CPU vs HAProxy", "the same, MySQL 9.7.4, caching_sha2_password", "1.73 (1.59-1.73)"},
	{"bigresult", "MB/s vs HAProxy", "a result of 100 MB", "1.16 (1.08-1.19)"},
	{"bigresult", "RSS growth, MB", "a result of 100 MB", "0.10 (0.07-0.11)"},
	{"idle", "RSS per session, KB", "1000 idle sessions", "12.5 (12.2-12.8)"},
	{"nextval_c16", "ops/s vs MariaDB's own NEXTVAL", "`NEXTVAL('photos')`, 16 connections", "1.89 (1.65-1.91)"},
	{"nextval_c16", "ops/s vs the UPDATE idiom", "the same", "14.48 (13.50-15.68)"},
	{"kinds_c16pin", "CPU of BIT_REVERSED vs a plain key", "NEXTVAL of a kind", "0.96"},
	{"kinds_c16pin", "CPU of ROTATE vs a plain key", "the same", "1.00"},
	{"kinds_c16pin", "CPU of SHARD BITS vs a plain key", "the same", "0.99"},
	{"insert_c16pin", "ops/s with NEXTVAL vs with a literal", "INSERT as text", "0.95"},
	{"insert_prepared_c16pin", "ops/s with NEXTVAL vs with a literal", "INSERT, prepared", "0.99"},
	{"insert_c16pin", "ops/s with a key filled in vs with a literal", "INSERT as text", "0.97"},
	{"insert_prepared_c16pin", "ops/s with a key filled in vs with a literal", "INSERT, prepared", "1.03"},
	{"ordered_c64", "ops/s vs the UPDATE idiom", "ORDER, 64 connections", "5.50 (4.50-6.02)"},
}

// TestThePageOfPerformanceHasTheFigures compares docs/performance.md with the figures and their
// limits, or writes them there with -update. A figure that breaks its limit is not published.
func TestThePageOfPerformanceHasTheFigures(t *testing.T) {
	table := "\n| workload | figure | seqproxy | limit |\n|---|---|---|---|\n"
	for _, p := range published {
		at := slices.IndexFunc(limits, func(l limit) bool { return l.workload == p.workload && l.figure == p.figure })
		if at < 0 {
			t.Fatalf("%s, %s has no limit", p.workload, p.figure)
		}
		median, _, _ := strings.Cut(p.measured, " ")
		measured, err := strconv.ParseFloat(median, 64)
		if err != nil {
			t.Fatal(err)
		}
		if l := limits[at]; l.atLeast && measured < l.must || !l.atLeast && measured > l.must {
			t.Errorf("%s, %s: %v breaks the limit of %v", p.what, p.figure, measured, l.must)
		}
		table += fmt.Sprintf("| %s | %s | %s | %v |\n", p.what, p.figure, p.measured, limits[at].must)
	}

	const page, begins, ends = "../../docs/performance.md", "<!-- figures, made by make docs -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begins)
	is, after, closed := strings.Cut(rest, ends)
	switch {
	case !found || !closed:
		t.Fatalf("%s has no table between %sand %s", page, begins, ends)
	case is == table+"\n":
	case !*updatePage:
		t.Errorf("%s is not up to date: run make docs", page)
	default:
		if err := os.WriteFile(page, []byte(before+begins+table+"\n"+ends+after), 0o644); err != nil { //nolint:gosec // everybody reads it
			t.Fatal(err)
		}
	}
}
