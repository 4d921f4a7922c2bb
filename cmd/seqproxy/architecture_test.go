package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestThePageOfTheArchitectureNamesWhatIsThere checks docs/architecture.md against the code: each
// file that it names exists, and so does each function that it names with a file.
func TestThePageOfTheArchitectureNamesWhatIsThere(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	source := make(map[string]string)
	for _, file := range regexp.MustCompile(`[a-z]+(?:/[a-z_]+)+\.go`).FindAllString(text, -1) {
		code, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Errorf("the page names a file that is not there: %v", err)
		}
		source[file] = string(code)
	}
	if len(source) < 10 {
		t.Errorf("found %d files on the page, want more: the test does not see them", len(source))
	}
	found := 0
	for _, match := range regexp.MustCompile("`(\\w+)`,?\\s*\\(?`([a-z/_]+\\.go)`").FindAllStringSubmatch(strings.ReplaceAll(text, "`,\n", "`, "), -1) {
		name, file := match[1], match[2]
		found++
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `\(`).MatchString(source[file]) {
			t.Errorf("the page says that %s is in %s, where it is not", name, file)
		}
	}
	if found < 15 {
		t.Errorf("found %d functions with their files on the page, want more: the test does not see them", found)
	}
}

// TestThePageOfTheArchitectureTellsTheHistories compares docs/architecture.md with the comments of
// the schedules that are tried, or writes them there with -update.
func TestThePageOfTheArchitectureTellsTheHistories(t *testing.T) {
	var list strings.Builder
	list.WriteString("\n")
	code := repositoryFile(t, "sequence/change/histories_test.go")
	for _, m := range regexp.MustCompile(`(?m)((?:^\t\t// .*\n)+)^\t\t\{"([^"]+)"`).FindAllStringSubmatch(code, -1) {
		wrapAt(&list, 120, "* ", "*"+strings.ToUpper(m[2][:1])+m[2][1:]+".* "+strings.ReplaceAll(m[1], "\t\t// ", ""))
	}
	if n := strings.Count(list.String(), "\n* "); n < 10 {
		t.Fatalf("found %d histories, want more: the test does not see them", n)
	}
	keepTable(t, "architecture.md", "histories", list.String()+"\n")
}

// TestThePageOfTheArchitectureTellsWhatArrivesLate does the same with schedules of a group.
func TestThePageOfTheArchitectureTellsWhatArrivesLate(t *testing.T) {
	var list strings.Builder
	list.WriteString("\n")
	code := repositoryFile(t, "sequence/limit/schedules_test.go")
	for _, m := range regexp.MustCompile(`(?m)((?:^// .*\n)+)^func Test\w+MayArriveLate\(`).FindAllStringSubmatch(code, -1) {
		wrapAt(&list, 120, "* ", strings.ReplaceAll(m[1], "// ", ""))
	}
	if n := strings.Count(list.String(), "\n* "); n != 2 {
		t.Fatalf("found %d histories, want 2: the test does not see them", n)
	}
	keepTable(t, "architecture.md", "late", list.String()+"\n")
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
		t.Errorf("the program is built with %v, which are for tests", got)
	}
	if got := tests.FindAllString(list("seqproxy/test/mysqltest"), -1); len(got) < 3 {
		t.Errorf("found %v in mysqltest, want more: the test does not see them", got)
	}
}
