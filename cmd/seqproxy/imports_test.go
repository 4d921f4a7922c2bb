package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport says which packages of this module each package may import, in files that are no tests.
// The table begins at the top: a package imports none that stands above it.
var mayImport = []struct{ from, to string }{
	{"test/torture/cmd", "internal/mysqld internal/planted test/torture"},
	{"test/torture", "internal/await internal/child internal/mysqld internal/planted test/network"},
	{"test/trip", "admin backend internal/mysqld protocol proxy sequence"},
	{"test/bench", "internal/await internal/child internal/mysqld internal/rawio sequence/kind"},
	{"test/transcript", "protocol test/mysqltest"},
	{"test/mysqltest", "internal/child internal/mysqld test/network"},
	{"test/clients", ""},
	{"test/history", ""},
	{"test/matrix", ""},
	{"test/network", ""},
	{"test/simulation", "sequence/change sequence/limit sequence/segment"},
	{"test/texts", "statement/lex"},
	{"cmd/seqproxy", "admin admin/web backend conf internal/await internal/demo internal/inspect internal/logfield internal/logs internal/mysqld internal/tlsfiles protocol proxy sequence sequence/kind"},
	{"conf/docs/cmd", "conf/docs"},
	{"conf/docs", "conf"},
	{"admin/web", "backend internal/histogram internal/logfield proxy sequence"},
	{"admin", "backend protocol proxy sequence sequence/kind statement statement/ddl"},
	{"conf", "internal/tlsfiles"},
	{"proxy", "backend internal/logfield protocol proxy/hangup proxy/kill proxy/login proxy/session proxy/state proxy/stats"},
	{"proxy/session", "backend internal/logfield protocol proxy/alone proxy/hangup proxy/keys proxy/kill proxy/login proxy/params proxy/plan proxy/shown proxy/state proxy/stats proxy/ticket sequence statement statement/idiom statement/lex statement/redact"},
	{"proxy/alone", "protocol proxy/keys proxy/plan proxy/state statement statement/idiom statement/lex"},
	{"proxy/params", "protocol proxy/keys proxy/plan proxy/state statement"},
	{"proxy/shown", "backend protocol proxy/keys proxy/plan sequence statement/ddl statement/idiom"},
	{"proxy/login", "backend protocol proxy/keys proxy/state"},
	{"proxy/keys", "backend protocol proxy/plan proxy/state proxy/stats sequence statement"},
	{"proxy/kill", "backend internal/logfield protocol statement"},
	{"proxy/hangup", "internal/logfield protocol"},
	{"proxy/plan", "proxy/state statement statement/lex"},
	{"proxy/stats", "backend internal/histogram protocol proxy/state"},
	{"proxy/ticket", "protocol proxy/state sequence statement statement/idiom"},
	{"proxy/state", "protocol statement statement/lex"},
	{"statement", "statement/ddl statement/idiom statement/lex"},
	{"statement/ddl", "statement/lex"},
	{"statement/idiom", "statement/lex"},
	{"statement/redact", "statement/lex"},
	{"statement/lex", ""},
	{"sequence", "internal/await internal/histogram internal/logfield internal/planted internal/process internal/tlsfiles sequence/agree sequence/cache sequence/change sequence/define sequence/floor sequence/follow sequence/group sequence/kind sequence/limit sequence/link sequence/member sequence/members sequence/segment sequence/snowflake sequence/stats sequence/steps sequence/store sequence/ticket"},
	{"sequence/ticket", "internal/await internal/logfield sequence/cache sequence/define sequence/floor sequence/link sequence/member sequence/segment sequence/stats sequence/store"},
	{"sequence/follow", "internal/await internal/logfield internal/planted sequence/member sequence/members sequence/store"},
	{"sequence/members", "internal/await internal/logfield sequence/agree sequence/change sequence/define sequence/floor sequence/link sequence/member sequence/segment sequence/steps sequence/store"},
	{"sequence/agree", "internal/await internal/logfield sequence/define sequence/floor sequence/kind sequence/link sequence/member sequence/segment sequence/store"},
	{"sequence/member", "internal/await internal/logfield internal/planted internal/process sequence/define sequence/floor sequence/group sequence/limit sequence/link sequence/segment sequence/stats sequence/store"},
	{"sequence/cache", "internal/await internal/logfield sequence/define sequence/floor sequence/link sequence/segment sequence/stats sequence/store"},
	{"sequence/group", "internal/await internal/logfield internal/planted sequence/define sequence/limit sequence/link sequence/store"},
	{"sequence/stats", "internal/histogram sequence/define"},
	{"sequence/steps", "internal/logfield internal/planted sequence/change sequence/define sequence/link sequence/store"},
	{"sequence/store", "internal/await internal/logfield internal/planted internal/process sequence/change sequence/define sequence/floor sequence/kind sequence/limit sequence/link sequence/segment"},
	{"sequence/link", "internal/await internal/logfield internal/planted internal/rawio internal/tlsfiles"},
	{"sequence/change", "internal/logfield sequence/define sequence/segment"},
	{"sequence/floor", "internal/logfield internal/planted internal/statefile sequence/define sequence/segment"},
	{"sequence/define", "sequence/kind"},
	{"sequence/snowflake", "internal/logfield internal/planted sequence/kind"},
	{"sequence/kind", ""},
	{"sequence/limit", ""},
	{"sequence/segment", ""},
	{"backend", "internal/histogram internal/logfield internal/rawio internal/tlsfiles protocol"},
	{"protocol", "internal/rawio"},
	{"internal/demo", "internal/await internal/mysqld"},
	{"internal/inspect", ""},
	{"internal/logs", "internal/logfield"},
	{"internal/mysqld", "internal/child"},
	{"internal/statefile", "internal/logfield internal/planted"},
	{"internal/tlsfiles", "internal/logfield"},
	{"internal/await", ""},
	{"internal/child", ""},
	{"internal/histogram", ""},
	{"internal/logfield", ""},
	{"internal/planted", ""},
	{"internal/process", ""},
	{"internal/rawio", ""},
}

// TestTheArchitectureAllowsTheseImports reads every file of the module, for all systems and tags.
// The imports and the table must be equal.
func TestTheArchitectureAllowsTheseImports(t *testing.T) {
	found := packagesImported(t)
	var above []string
	for _, row := range mayImport {
		allowed := strings.Fields(row.to)
		got, ok := found[row.from]
		if !ok {
			t.Errorf("the table has %s, which is no package", row.from)
		}
		for _, name := range got {
			if !slices.Contains(allowed, name) {
				t.Errorf("%s imports %s, which the table does not allow", row.from, name)
			}
		}
		above = append(above, row.from)
		for _, name := range allowed {
			if !slices.Contains(got, name) {
				t.Errorf("the table allows %s to import %s, which it does not do", row.from, name)
			}
			if slices.Contains(above, name) {
				t.Errorf("%s imports %s, which stands above it", row.from, name)
			}
		}
		delete(found, row.from)
	}
	for name, to := range found {
		t.Errorf("%s is not in the table: {%q, %q}", name, name, strings.Join(to, " "))
	}
}

// TestThePageOfPackagesIsMadeOfTheCode makes docs/packages.md from the table and each package's
// comment, or compares them.
func TestThePageOfPackagesIsMadeOfTheCode(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}\t{{.Doc}}", "seqproxy/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	is := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		name, doc, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words := strings.SplitN(doc, " ", 3)
		if len(words) < 3 || words[0] != "Package" && words[0] != "Command" {
			t.Fatalf("the comment of %s is %q, want one that begins with Package and its name", name, doc)
		}
		phrase, _, _ := strings.Cut(strings.TrimSuffix(words[2], "."), ": ")
		is[strings.TrimPrefix(name, "seqproxy/")] = phrase
	}
	table := "| package | what it does | may import |\n|---|---|---|\n"
	for _, row := range mayImport {
		to := ""
		if row.to != "" {
			to = "`" + strings.ReplaceAll(row.to, " ", "`, `") + "` "
		}
		table += "| `" + row.from + "` | " + is[row.from] + " | " + to + "|\n"
	}
	keepPage(t, "packages.md", map[string]string{"packages": table})
}

// packagesImported returns, for each package of the module, the packages of the module that
// its files import, without tests.
func packagesImported(t *testing.T) map[string][]string {
	t.Helper()
	const root = "../.."
	found := make(map[string][]string)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root:
			// tools is a module of its own.
			if name := entry.Name(); strings.HasPrefix(name, ".") || name == "testdata" || name == "tools" {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		from := filepath.ToSlash(folder)
		to := found[from]
		if !strings.HasSuffix(path, "_test.go") {
			for _, spec := range file.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				if name, ok := strings.CutPrefix(imported, "seqproxy/"); ok && !slices.Contains(to, name) {
					to = append(to, name)
				}
			}
		}
		slices.Sort(to)
		found[from] = to
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
