package matrix

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// checklist is what a proxy that relays the protocol has to do right. A test that fails if a point
// is wrong has "// Checklist 17." in its comment.
var checklist = []string{
	1:  "the first packet of a server may be an ERR without a state, which goes to the client",
	2:  "logins have a deadline, and bounds on size and number, also before TLS",
	3:  "the capabilities offered are those that all servers have; both sides agree on the same",
	4:  "query attributes stand before a text and in an execution",
	5:  "collations above 255 need more than the login's byte; the greeting has the server's own",
	6:  "clients differ: other flags in the TLS request, no plugin, one NUL for an empty password",
	7:  "the login dialogue: switches, further factors, a further packet after fast-ok",
	8:  "the side that verifies makes the salt; a password that passes through is a secret",
	9:  "the demand for TLS holds on each side, and an RSA key in clear may be an attacker's",
	10: "compression begins after the last OK and has numbers of its own",
	11: "packet numbers begin at 0 and go on through the answer, also in the proxy's own answers",
	12: "a packet of 0xFFFFFF bytes goes on, and a row of them is no terminator",
	13: "some commands have no answer, and the next one comes with them",
	14: "the shapes of the small commands' answers; a change of user is a login",
	15: "the first byte says what an answer is, and only of the first packet",
	16: "terminators with and without EOF; an ERR among the rows ends everything",
	17: "more results follow where the OK or the terminator says so, also of CALL and OUT parameters",
	18: "a cursor's answer is metadata only, its rows come with FETCH",
	19: "LOCAL INFILE: packets until an empty one, also from a client that refuses; more results may follow",
	20: "the answer to PREPARE: parameters, then columns, each perhaps with EOF",
	21: "an execution may rely on earlier types, on long data, and on having no parameters",
	22: "the answer to FIELD_LIST",
	23: "replication is a stream without an end",
	24: "an unknown command is error 1047, and the session goes on",
	25: "an empty packet is no command, and no crash",
	26: "session tracking in OKs and terminators, every tracker",
	27: "a client that did not ask for tracking gets none",
	28: "what a text means depends on sql_mode and character set, which the proxy follows",
	29: "an answer of the proxy has the state of the transaction; in a larger statement NEXTVAL is rewritten",
	30: "ROW_COUNT(), FOUND_ROWS(), warnings and diagnostics are as after the statement",
	31: "a client that goes away ends its statement",
	32: "a server that goes away in mid-result ends the client's connection",
	33: "KILL means the proxy's ids, of the same user, in all forms",
	34: "MariaDB's extended flags: progress, bulk, metadata that is cached or extended",
	35: "half-closed connections, keepalive, wait_timeout, and peers that read slowly",
}

func TestEveryPointOfTheChecklistHasATest(t *testing.T) {
	mark := regexp.MustCompile(`(?m)^Checklist (.*)$`)
	tests := make(map[int][]string)
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "../.." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			for _, m := range mark.FindAllStringSubmatch(group.Text(), -1) {
				test := testWith(file, group)
				number, err := strconv.Atoi(strings.TrimSuffix(m[1], "."))
				if err != nil || number < 1 || number >= len(checklist) || test == "" {
					t.Errorf("%s: %q names no point, or stands above no test", path, m[0])
					continue
				}
				tests[number] = append(tests[number], test)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for number, point := range checklist[1:] {
		number++
		if len(tests[number]) == 0 {
			t.Errorf("no test for point %d: %s", number, point)
		}
		t.Logf("%d. %s:\n\t%s", number, point, strings.Join(tests[number], "\n\t"))
	}
}

// testWith returns the name of the test that has the comment, or "".
func testWith(file *ast.File, comment *ast.CommentGroup) string {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Doc == comment && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
			return f.Name.Name
		}
	}
	return ""
}
