package mysqltest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const program = "seqproxy/cmd/seqproxy"

// ProgramEnv is the environment variable with a seqproxy built before the tests started, since a
// build takes a second.
const ProgramEnv = "SEQPROXY_TEST_PROGRAM"

// sources is a template for `go list -deps`: it prints the directories and files of this module's
// packages.
const sources = `{{if and .Module .Module.Main}}{{$dir := .Dir}}{{$dir}}
{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}
{{end}}{{range .TestGoFiles}}{{$dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$dir}}/{{.}}
{{end}}{{end}}`

// programs are those that this test process has built, by their flags. [Main] removes them.
var programs struct {
	mu    sync.Mutex
	dir   string
	paths map[string]string
}

// Program builds the present seqproxy with flags of `go build` ("-race", "-tags=..."), once. It
// returns the program's path, which exists until [Main] ends. Without flags it may be the one of
// [ProgramEnv].
//
// `go test` uses a cached result unless the test's packages, or files that the test opened, have
// changed. It does not know which files a compiler has read that the test starts. So Program opens
// all files of the program, and the tests beside them: some tests run those against a changed
// program.
func Program(t testing.TB, flags ...string) string {
	t.Helper()
	if path := os.Getenv(ProgramEnv); path != "" && len(flags) == 0 {
		return path
	}
	programs.mu.Lock()
	defer programs.mu.Unlock()
	asked := strings.Join(flags, " ")
	if path := programs.paths[asked]; path != "" {
		return path
	}
	path := programPath(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	list := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", "-deps", "-f", sources}, flags, []string{program})...)
	var complaint strings.Builder
	list.Stderr = &complaint
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", list, err, complaint.String())
	}
	files := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	if len(files) == 0 {
		t.Fatalf("go list names no file that %s is made of", program)
	}
	for _, name := range files {
		if _, err := os.Stat(name); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-buildvcs=false", "-o", path}, flags, []string{program})...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	programs.paths[asked] = path
	return path
}

// programPath returns the path of the next program. The caller has the lock.
func programPath(t testing.TB) string {
	t.Helper()
	shared.mu.Lock()
	enabled := shared.enabled
	shared.mu.Unlock()
	if !enabled {
		t.Fatal("a program needs in this package: func TestMain(m *testing.M) { mysqltest.Main(m) }")
	}
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "seqproxy-program-")
		if err != nil {
			t.Fatal(err)
		}
		programs.dir, programs.paths = dir, make(map[string]string)
	}
	return filepath.Join(programs.dir, fmt.Sprint("seqproxy", len(programs.paths)))
}

// removePrograms removes what [Program] has built.
func removePrograms() error {
	programs.mu.Lock()
	defer programs.mu.Unlock()
	programs.paths = nil
	return os.RemoveAll(programs.dir)
}
