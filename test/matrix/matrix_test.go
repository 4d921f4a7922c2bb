package matrix

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

const file = "../../docs/compatibility-tables.md"

var update = flag.Bool("update", false, "make the tables of "+file+" from the runs in SEQPROXY_MATRIX_OUT")

func TestThePageTellsWhatRunsHaveShown(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, name := range []string{CommandTable, ClientTable, KindTable} {
		if _, err := Parse(page, name); err != nil && !*update {
			t.Error(err)
		}
	}
	dir := Out()
	if dir == "" {
		if *update {
			t.Fatal("-update needs the runs: SEQPROXY_MATRIX_OUT is not set")
		}
		return // the tests that run the commands compare their own column
	}
	runs, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]Table)
	want[CommandTable], err = commandTable(runs.Commands)
	if errors.Is(err, errNoRun) && !*update {
		t.Skipf("%v; the page is about %q", err, servers) // a newer version is in use
	}
	if err != nil {
		t.Fatal(err)
	}
	if want[ClientTable], err = clientTable(runs.Clients); err != nil {
		t.Fatal(err)
	}
	if want[KindTable], err = kindTable(runs.Kinds); err != nil {
		t.Fatal(err)
	}
	for name, table := range want {
		if *update {
			if page, err = put(page, name, table); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := Parse(page, name); err != nil || got.String() != table.String() {
			t.Errorf("the table %s differs from what the runs have shown (%v): run this with -update\n%s", name, err, table)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunsBecomeTables(t *testing.T) {
	dir := t.TempDir()
	for _, server := range servers {
		run := Commands{Server: server, Rows: []Row{{"COM_PING", "same"}, {"COM_TIME", "error 1047"}}}
		if server == "MySQL 9.7" {
			run.Rows[1].Cell = "differs: it may"
		}
		if err := run.Write(dir); err != nil {
			t.Fatal(err)
		}
		of := Kind{Client: "driver", Server: server, Kind: "BIT_REVERSED", Cells: map[string]string{"insert id": "yes", "rows, filled in": "1235", "batch, filled in": "yes"}}
		if strings.HasPrefix(server, "MariaDB") {
			of.Cells["batch, filled in"], of.Cells["RETURNING"] = "1235", "yes"
		}
		if err := of.Write(dir); err != nil {
			t.Fatal(err)
		}
		for _, login := range []string{"password", "zstd"} {
			if login == "zstd" && strings.HasPrefix(server, "MariaDB") {
				continue
			}
			c := Client{Client: "driver", Server: server, Login: login, Steps: map[string]string{"connect": "ok"}}
			if err := c.Write(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	runs, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	byCommand, err := commandTable(runs.Commands)
	if err != nil {
		t.Fatal(err)
	}
	byClient, err := clientTable(runs.Clients)
	if err != nil {
		t.Fatal(err)
	}
	page := "# Page\n<!-- commands: made by a test -->\nold\n<!-- end of commands -->\nbetween\n<!-- clients: made by a test --><!-- -->\n"
	if _, err := put(page, ClientTable, byClient); err == nil {
		t.Error("a page without the marks was written to")
	}
	if page, err = put(page, CommandTable, byCommand); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page, "old") || !strings.HasPrefix(page, "# Page\n") || !strings.Contains(page, "\nbetween\n") {
		t.Errorf("got page\n%s", page)
	}
	back, err := Parse(page, CommandTable)
	if err != nil || back.String() != byCommand.String() {
		t.Errorf("read back: got\n%s%v, want\n%s", back, err, byCommand)
	}
	if got := back.Column("MySQL 9.7")["COM_TIME"]; got != "differs: it may" {
		t.Errorf("COM_TIME on MySQL: got %q", got)
	}
	if back.Column("MySQL 5.0") != nil {
		t.Error("got a column that is not there")
	}
	if got, want := byClient.Column("password")["driver"]+"/"+byClient.Column("zstd")["driver"], "yes/MySQL"; got != want {
		t.Errorf("the client's logins: got %q, want %q", got, want)
	}

	byKind, err := kindTable(runs.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	if want := "| BIT_REVERSED | driver | yes |  |  |  |  | 1235 |  |  |  | MySQL; 1235 on MariaDB |  | MariaDB |"; !strings.Contains(byKind.String(), want) {
		t.Errorf("got\n%s, want the row %s", byKind, want)
	}
	runs.Kinds[0].Cells["insert id"] = "no"
	if _, err := kindTable(runs.Kinds); err == nil {
		t.Error("a wrong key got into the table")
	}

	// A failed or missing run makes no table.
	failed := slices.Clone(runs.Clients)
	failed[0].Steps = map[string]string{"connect": "refused"}
	if _, err := clientTable(failed); err == nil {
		t.Error("a client that failed got into the table")
	}
	if _, err := commandTable(runs.Commands[1:]); !errors.Is(err, errNoRun) {
		t.Error("a server without a run got into the table")
	}
	runs.Commands[2].Rows = runs.Commands[2].Rows[1:]
	if _, err := commandTable(runs.Commands); err == nil {
		t.Error("runs of different commands became one table")
	}
}
