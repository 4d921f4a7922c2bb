package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seesInside are the test files of sequence that are inside the package: the seam, through which
// all other tests reach its inside, and tables of what only decides.
var seesInside = []string{
	"names_unknown_test.go",
	"seam_cache_test.go",
	"seam_members_test.go",
	"seam_steps_test.go",
	"seam_test.go",
	"seam_timing_test.go",
	"timing_test.go",
}

// TestTestsOfSequenceReachInsideThroughTheSeam: a change of layout then edits the seam, and no
// test.
func TestTestsOfSequenceReachInsideThroughTheSeam(t *testing.T) {
	files, err := filepath.Glob("../../sequence/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var inside []string
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name != "sequence" {
			continue
		}
		inside = append(inside, filepath.Base(path))
		if !strings.HasPrefix(filepath.Base(path), "seam_") {
			continue
		}
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				t.Errorf("%s has %s, want no test in the seam", path, f.Name.Name)
			}
		}
	}
	if !slices.Equal(inside, seesInside) {
		t.Errorf("inside of package sequence are %v, want %v", inside, seesInside)
	}
}
