package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestThePageOfTheArchitectureNamesWhatIsThere checks the map and docs/safety.md against the code:
// each file that they name exists, and so does each function that they name with a file.
func TestThePageOfTheArchitectureNamesWhatIsThere(t *testing.T) {
	text := repositoryFile(t, "docs/architecture.md") + repositoryFile(t, "docs/safety.md")
	source := make(map[string]string)
	for _, file := range regexp.MustCompile(`[a-z]+(?:/[a-z_]+)+\.go`).FindAllString(text, -1) {
		code, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Errorf("a page names a file that does not exist: %v", err)
		}
		source[file] = string(code)
	}
	if len(source) < 10 {
		t.Errorf("found %d files on the pages, want more: the test does not see them", len(source))
	}
	found := 0
	for _, match := range regexp.MustCompile("`(\\w+)`,?\\s*\\(?`([a-z/_]+\\.go)`").FindAllStringSubmatch(strings.ReplaceAll(text, "`,\n", "`, "), -1) {
		name, file := match[1], match[2]
		found++
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `\(`).MatchString(source[file]) {
			t.Errorf("a page places %s in %s, which does not have it", name, file)
		}
	}
	if found < 15 {
		t.Errorf("found %d functions with their files on the pages, want more: the test does not see them", found)
	}
}

// rooms are the folders on the map, from the bottom up.
var rooms = []string{
	"protocol", "backend", "statement", "sequence/segment", "sequence/limit", "sequence/floor",
	"sequence/change", "sequence/link", "sequence/store", "sequence/steps", "sequence/group", "sequence/member",
	"sequence/agree", "sequence/members", "sequence/follow", "sequence/cache", "sequence/ticket",
	"sequence",
	"proxy/state", "proxy/plan", "proxy/keys", "proxy/login", "proxy/kill", "proxy/hangup",
	"proxy/session", "proxy", "admin",
}

// TestThePageOfTheArchitectureHasTheRooms makes the map of what the doc.go of each room says: what
// the room does, and the type to start at.
func TestThePageOfTheArchitectureHasTheRooms(t *testing.T) {
	table := "| folder | what it does | start at |\n|---|---|---|\n"
	for _, room := range rooms {
		doc := docOf(t, room)
		says := regexp.MustCompile(`^Package \w+ (.*?)[.,:;] `).FindStringSubmatch(doc)
		start := regexp.MustCompile(`Start (?:at|from) \[?([A-Za-z.]+\w)\b`).FindStringSubmatch(doc)
		if says == nil || start == nil {
			t.Fatalf("the comment of %s is %q, want what the package does, and where to start", room, doc)
		}
		table += "| `" + room + "` | " + says[1] + " | `" + start[1] + "` |\n"
	}
	keepTable(t, "architecture.md", "rooms", table)
}

// TestThePageOfTheArchitectureHasTheOrderOfLocks copies it from the two packages that have one.
func TestThePageOfTheArchitectureHasTheOrderOfLocks(t *testing.T) {
	var list strings.Builder
	for _, room := range []string{"proxy", "sequence"} {
		order := regexp.MustCompile(`A lock that stands further left is taken first: ([^.]+(?:\.[^ ][^.]*)*)\. `).FindStringSubmatch(docOf(t, room) + " ")
		if order == nil {
			t.Fatalf("the comment of %s has no order of locks", room)
		}
		wrapAt(&list, 120, "* ", "`"+room+"`: "+order[1])
	}
	keepTable(t, "architecture.md", "locks", list.String())
}

// docOf returns the comment of a package in its doc.go, on one line.
func docOf(t *testing.T, folder string) string {
	t.Helper()
	comment, _, _ := strings.Cut(repositoryFile(t, folder+"/doc.go"), "\npackage ")
	return strings.Join(strings.Fields(strings.ReplaceAll(comment, "//", " ")), " ")
}

// TestThePageOfSafetyHasTheHistories compares docs/safety.md with the comments of the schedules
// that the tests try, or writes them there with -update.
func TestThePageOfSafetyHasTheHistories(t *testing.T) {
	var list strings.Builder
	list.WriteString("\n")
	code := repositoryFile(t, "sequence/change/histories_test.go")
	for _, m := range regexp.MustCompile(`(?m)((?:^\t\t// .*\n)+)^\t\t\{"([^"]+)"`).FindAllStringSubmatch(code, -1) {
		wrapAt(&list, 120, "* ", "*"+strings.ToUpper(m[2][:1])+m[2][1:]+".* "+strings.ReplaceAll(m[1], "\t\t// ", ""))
	}
	if n := strings.Count(list.String(), "\n* "); n < 10 {
		t.Fatalf("found %d histories, want more: the test does not see them", n)
	}
	keepTable(t, "safety.md", "histories", list.String()+"\n")
}

// TestThePageOfSafetyHasWhatArrivesLate does the same with schedules of a group.
func TestThePageOfSafetyHasWhatArrivesLate(t *testing.T) {
	var list strings.Builder
	list.WriteString("\n")
	code := repositoryFile(t, "sequence/limit/schedules_test.go")
	for _, m := range regexp.MustCompile(`(?m)((?:^// .*\n)+)^func Test\w+MayArriveLate\(`).FindAllStringSubmatch(code, -1) {
		wrapAt(&list, 120, "* ", strings.ReplaceAll(m[1], "// ", ""))
	}
	if n := strings.Count(list.String(), "\n* "); n != 2 {
		t.Fatalf("found %d histories, want 2: the test does not see them", n)
	}
	keepTable(t, "safety.md", "late", list.String()+"\n")
}

// TestTheArchitectureKeepsWhatIsForTestsOutOfTheProgram checks all packages that the program is
// built from.
func TestTheArchitectureKeepsWhatIsForTestsOutOfTheProgram(t *testing.T) {
	list := func(what string) string {
		t.Helper()
		out, err := exec.Command("go", "list", "-deps", what).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	tests := regexp.MustCompile(`(?im)^(?:.*toxiproxy.*|.*/zerolog\b.*|.*/goleak\b.*|.*/porcupine\b.*|gorm\.io/.*|testing|seqproxy/test/.*)$`)
	if got := tests.FindAllString(list("seqproxy/cmd/seqproxy"), -1); len(got) > 0 {
		t.Errorf("the program is built with %v, want no package for tests", got)
	}
	if got := tests.FindAllString(list("seqproxy/test/mysqltest"), -1); len(got) < 3 {
		t.Errorf("found %v in mysqltest, want more: the test does not see them", got)
	}
}
