package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// errorSource holds the errors for clients in the source.
type errorSource struct {
	t      *testing.T
	codes  map[string]int    // values of named constants, go-mysql's and the proxy's own
	places map[string]string // places where errors are made, by "1105 | HY000"
	quoted strings.Builder   // all strings in the source
}

var sqlState = regexp.MustCompile(`^(0[1-9A-Z]|[1-4][0-9A-Z]|HY|XA)[0-9A-Z]{3}$`)

func readErrorSource(t *testing.T) *errorSource {
	t.Helper()
	s := &errorSource{t: t, codes: make(map[string]int), places: make(map[string]string)}
	library, err := build.Import("github.com/go-mysql-org/go-mysql/mysql", ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, pattern := range []string{library.Dir + "/*.go", "../../*/*.go", "../../*/*/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "/error_texts.go") || strings.HasPrefix(name, "../../test/") {
				continue
			}
			file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			s.constants(file)
			if !strings.HasPrefix(name, library.Dir) {
				files = append(files, file)
			}
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr: // f(code, "HY000", ...)
				for i := 1; i < len(n.Args); i++ {
					s.found(set, n.Args[i-1], n.Args[i])
				}
			case *ast.CompositeLit: // ServerError{Code: code, State: "HY000"}
				fields := make(map[string]ast.Expr)
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok {
						if key, ok := pair.Key.(*ast.Ident); ok {
							fields[key.Name] = pair.Value
						}
					}
				}
				if fields["Code"] != nil && fields["State"] != nil {
					s.found(set, fields["Code"], fields["State"])
				}
			case *ast.BasicLit:
				if text, ok := literal(n); ok {
					s.quoted.WriteString(text + "\n")
				}
			}
			return true
		})
	}
	return s
}

// constants reads named numbers.
func (s *errorSource) constants(file *ast.File) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		for _, spec := range decl.Specs {
			v := spec.(*ast.ValueSpec) //nolint:forcetypeassert // a constant is nothing else
			for i, value := range v.Values {
				if code := s.code(value); code != 0 {
					s.codes[v.Names[i].Name] = code
				}
			}
		}
	}
}

// code returns the value of an expression, or 0 if it is not constant.
func (s *errorSource) code(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, _ := strconv.Atoi(e.Value)
		return n
	case *ast.Ident:
		return s.codes[e.Name]
	case *ast.SelectorExpr:
		return s.codes[e.Sel.Name]
	}
	return 0
}

// found records an error if code and state are those of one.
func (s *errorSource) found(set *token.FileSet, code, state ast.Expr) {
	text, ok := literal(state)
	n := s.code(code)
	if !ok || !sqlState.MatchString(text) || text == "01000" || n < 1000 { // a warning is no error
		return
	}
	s.places[fmt.Sprintf("%d | %s", n, text)] = set.Position(code.Pos()).String()
}

// TestThePageOfErrorsIsMadeOfTheCode compares the texts with the errors in the source, and the page
// with the texts.
func TestThePageOfErrorsIsMadeOfTheCode(t *testing.T) {
	source := readErrorSource(t)
	if len(source.places) < 20 {
		t.Errorf("found %d errors in the code, want more: the test does not see them", len(source.places))
	}
	documented, tables := make(map[string]bool), make(map[string]string)
	for _, s := range errorTexts {
		table := "| error | state | cause | cure |\n|---|---|---|---|\n"
		for _, e := range s.errors {
			code := fmt.Sprintf("%d | %s", e.code, e.state)
			documented[code] = true
			if source.places[code] == "" || e.cause == "" || e.cure == "" {
				t.Errorf("errorTexts has the error %s, which the code does not make, or without cause or cure", code)
			}
			table += fmt.Sprintf("| %s | %s | %s |\n", code, e.cause, e.cure)
		}
		tables[s.section] = table
	}
	for code, at := range source.places {
		if !documented[code] {
			t.Errorf("errorTexts does not have the error %s of %s", code, at)
		}
	}
	for _, s := range wordTexts {
		table := "| text | cause | cure |\n|---|---|---|\n"
		for _, e := range s.errors {
			if !strings.Contains(source.quoted.String(), e.words) || e.cause == "" || e.cure == "" {
				t.Errorf("wordTexts has the text %q, which is not in the code, or without cause or cure", e.words)
			}
			table += fmt.Sprintf("| `%s` | %s | %s |\n", e.words, e.cause, e.cure)
		}
		tables[s.section] = table
	}
	keepPage(t, "errors.md", tables)
}
