package mysqltest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const program = "seqproxy/cmd/seqproxy"

// ProgramEnv names the environment variable of a seqproxy that was built before the tests were
// started: a build costs a second.
const ProgramEnv = "SEQPROXY_TEST_PROGRAM"

// sources is a template for `go list -deps`: the files of this module's packages, and their
// directories.
const sources = `{{if and .Module .Module.Main}}{{$dir := .Dir}}{{$dir}}
{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}
{{end}}{{range .TestGoFiles}}{{$dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$dir}}/{{.}}
{{end}}{{end}}`

// Program builds seqproxy as it is now, with flags of `go build` ("-race", "-tags=..."),
// and returns where it is until the test's end. Without flags it may be the one of [ProgramEnv].
//
// `go test` takes a result from its cache unless the test's own packages or the files
// that the test looked at have changed, and knows nothing of what a compiler that the
// test starts has read. So Program looks at all files that the program is made of, and at
// the tests beside them: some tests run these against a changed program.
func Program(t testing.TB, flags ...string) string {
	t.Helper()
	if path := os.Getenv(ProgramEnv); path != "" && len(flags) == 0 {
		return path
	}
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
	path := filepath.Join(t.TempDir(), "seqproxy")
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-buildvcs=false", "-o", path}, flags, []string{program})...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return path
}
