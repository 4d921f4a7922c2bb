// Package docs makes docs/config.md from its own text and tables of all keys. The tables come from
// the structs of package conf and the comments of their fields. Start at [Page].
package docs

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"seqproxy/conf"
)

// text is the page without its tables. {{keys "log"}} stands for the table of the keys in [log],
// and {{keys ""}} for the table of keys outside of tables.
//
//go:embed config.md.tmpl
var text string

// Page returns the text of docs/config.md. source is the folder of package conf. The error names
// each key without a comment, without the tag reload, or without a place on the page.
func Page(source string) ([]byte, error) {
	return page(text, source, conf.Keys())
}

func page(text, source string, keys []conf.Key) ([]byte, error) {
	comments, err := fieldComments(source)
	if err != nil {
		return nil, err
	}
	rows := make(map[string][]string) // by table
	var tables, problems []string
	add := func(k conf.Key, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("conf.%s.%s (%s): ", k.Struct, k.Field, k.Name)+fmt.Sprintf(format, args...))
	}
	for _, k := range keys {
		if k.Table {
			continue
		}
		table := k.Name[:max(0, strings.LastIndexByte(k.Name, '.'))]
		if !slices.Contains(tables, table) {
			tables = append(tables, table)
		}
		comment := comments[k.Struct+"."+k.Field]
		if comment == "" {
			add(k, "needs a comment above it that says what the key means, for docs/config.md")
		}
		if strings.Contains(comment, "|") {
			add(k, "a | in the comment would end the cell of docs/config.md")
		}
		if k.When.Words() == "" {
			add(k, `needs a tag reload:"now", "new" or "restart", which says from when on a change counts; is %q`, k.When)
		}
		rows[table] = append(rows[table], row(k, comment))
	}
	shown := make(map[string]bool)
	t, err := template.New("config.md").Funcs(template.FuncMap{
		"keys": func(table string) (string, error) {
			if rows[table] == nil {
				return "", fmt.Errorf("there are no keys in a table %q", table)
			}
			shown[table] = true
			return head + strings.Join(rows[table], "\n"), nil
		},
	}).Parse(text)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBufferString(warning)
	if err := t.Execute(out, nil); err != nil {
		return nil, err
	}
	for _, table := range tables {
		if !shown[table] {
			problems = append(problems, fmt.Sprintf("conf/docs/config.md.tmpl needs a section with {{keys %q}}", table))
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("docs/config.md cannot be made:\n%s", strings.Join(problems, "\n"))
	}
	return out.Bytes(), nil
}

const (
	warning = "<!-- Made by go generate ./conf (make docs) of the structs in conf and of conf/docs/config.md.tmpl. -->\n"
	head    = "| key | type | default | a change counts | meaning |\n|---|---|---|---|---|\n"
)

func row(k conf.Key, comment string) string {
	kind, standard := k.Type, ""
	if len(k.OneOf) > 0 {
		quoted := make([]string, len(k.OneOf))
		for i, value := range k.OneOf {
			quoted[i] = fmt.Sprintf("`%q`", value)
		}
		kind = strings.Join(quoted, ", ")
	}
	if k.Default != "" {
		standard = "`" + k.Default + "` "
	}
	return fmt.Sprintf("| `%s` | %s | %s| %s | %s |", k.Name, kind, standard, k.When.Words(), comment)
}

// fieldComments returns the comments of all struct fields in a folder, by "Struct.Field", each on
// one line.
func fieldComments(folder string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	comments := make(map[string]string)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, field := range fields.Fields.List {
				for _, ident := range field.Names {
					comments[spec.Name.Name+"."+ident.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
				}
			}
			return false
		})
	}
	return comments, nil
}
