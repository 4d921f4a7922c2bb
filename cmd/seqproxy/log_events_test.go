package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tests read the source for events, their levels and their fields. So even a line that no test
// has caused is documented.

// logEvent describes an event in the source. Several places may log the same event.
type logEvent struct {
	levels, fields map[string]bool
	places         []string
}

// logSource is the source of the packages that log.
type logSource struct {
	t         *testing.T
	set       *token.FileSet
	functions map[string][]*ast.FuncDecl // by folder and name
	// for logfield's constants and functions: "NameConn" and "Conn" are "conn"
	names  map[string]string
	kinds  map[string]map[string]bool // by field: the functions that make it
	events map[string]*logEvent
}

var zapLevels = map[string]string{
	"Debug": "debug", "Info": "info", "Warn": "warn", "Error": "error", "DPanic": "error", "Panic": "error", "Fatal": "error",
	"DebugLevel": "debug", "InfoLevel": "info", "WarnLevel": "warn", "ErrorLevel": "error",
}

// readLogSource reads every package of the proxy that uses zap.
func readLogSource(t *testing.T) *logSource {
	t.Helper()
	l := &logSource{
		t: t, set: token.NewFileSet(), functions: make(map[string][]*ast.FuncDecl), names: make(map[string]string),
		kinds: make(map[string]map[string]bool), events: make(map[string]*logEvent),
	}
	folders := make(map[string][]*ast.File)
	for _, pattern := range []string{"../../*/*.go", "../../*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			folder := filepath.ToSlash(filepath.Dir(name))
			if strings.HasSuffix(name, "_test.go") || slices.Contains([]string{"../../test/torture", "../../test/bench", "../../test/mysqltest"}, folder) {
				continue
			}
			file, err := parser.ParseFile(l.set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			folders[folder] = append(folders[folder], file)
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					l.functions[folder+" "+f.Name.Name] = append(l.functions[folder+" "+f.Name.Name], f)
				}
			}
		}
	}
	for _, file := range folders["../../internal/logfield"] {
		l.readNames(file)
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if folder == "../../internal/logfield" || !slices.ContainsFunc(folders[folder], mayLog) {
			continue
		}
		for _, file := range folders[folder] {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
					l.readFunction(folder, f)
				}
			}
		}
	}
	return l
}

// mayLog reports whether a package with such a file may log.
func mayLog(file *ast.File) bool {
	return imports(file, "go.uber.org/zap") || imports(file, "seqproxy/internal/logfield")
}

func imports(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
}

// readNames reads logfield: its constants, and the field of each function.
func (l *logSource) readNames(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if name, ok := literal(v.Values[0]); ok {
				l.names[v.Names[0].Name] = name
			}
		}
		return true
	})
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && strings.HasPrefix(id.Name, "Name") {
				l.names[f.Name.Name] = l.names[id.Name]
			}
			return true
		})
	}
}

func literal(e ast.Expr) (string, bool) {
	b, ok := e.(*ast.BasicLit)
	if !ok || b.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(b.Value)
	return s, err == nil
}

// member splits x.name, such as zap.String, if x is an identifier.
func member(e ast.Expr) (x, name string) {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if id, ok := s.X.(*ast.Ident); ok {
			return id.Name, s.Sel.Name
		}
	}
	return "", ""
}

// readFunction looks for log calls in a function.
func (l *logSource) readFunction(folder string, f *ast.FuncDecl) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			l.checkField(n)
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || !isLogger(s.X) || len(n.Args) == 0 {
				return true
			}
			fields := make(map[string]bool)
			l.fieldsOf(folder, f, s.X, fields)
			switch level, levelled := zapLevels[s.Sel.Name]; {
			case levelled:
				l.addFields(folder, f, n.Args[1:], fields)
				event, ok := literal(n.Args[0])
				if !ok {
					l.t.Errorf("%s: the event has to be a constant text", l.set.Position(n.Pos()))
					return true
				}
				l.add(event, level, fields, n.Pos())
			case s.Sel.Name == "Log" && len(n.Args) > 1:
				l.addFields(folder, f, n.Args[2:], fields)
				found := 0
				for _, from := range l.assigned(folder, f, n.Args[1]) {
					ast.Inspect(from.Body, func(m ast.Node) bool {
						if r, ok := m.(*ast.ReturnStmt); ok && len(r.Results) == 2 {
							_, level := member(r.Results[0])
							if event, ok := literal(r.Results[1]); ok && zapLevels[level] != "" {
								found++
								l.add(event, zapLevels[level], fields, r.Pos())
							}
						}
						return true
					})
				}
				if found == 0 {
					l.t.Errorf("%s: the test does not see what is logged here", l.set.Position(n.Pos()))
				}
			}
		case *ast.CompositeLit: // zapcore.Entry{Level: ..., Message: ...}
			if _, name := member(n.Type); name != "Entry" {
				return true
			}
			event, level := "", ""
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					switch id, _ := kv.Key.(*ast.Ident); {
					case id == nil:
					case id.Name == "Level":
						_, name := member(kv.Value)
						level = zapLevels[name]
					case id.Name == "Message":
						event, _ = literal(kv.Value)
					}
				}
			}
			if level == "" {
				level = "as theirs" // the level of other lines
			}
			if event != "" {
				fields := make(map[string]bool)
				l.fieldsOf(folder, f, f.Body, fields)
				l.add(event, level, fields, n.Pos())
			}
		}
		return true
	})
}

// isLogger reports whether e is a *zap.Logger, judging by its name: s.log, s.log(), l.Logger().
func isLogger(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"log", "logger"}, strings.ToLower(e.Name))
	case *ast.SelectorExpr:
		return isLogger(e.Sel)
	case *ast.CallExpr:
		if s, ok := e.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "With" || s.Sel.Name == "Named") {
			return isLogger(s.X)
		}
		return isLogger(e.Fun)
	}
	return false
}

// assigned returns the functions whose results f assigns to e.
func (l *logSource) assigned(folder string, f *ast.FuncDecl, e ast.Expr) (from []*ast.FuncDecl) {
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || !slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool { x, ok := e.(*ast.Ident); return ok && x.Name == id.Name }) {
			return true
		}
		for _, r := range a.Rhs {
			if call, ok := r.(*ast.CallExpr); ok {
				from = append(from, l.called(folder, call)...)
			}
		}
		return true
	})
	return from
}

// called returns the functions of the folder that a call may mean.
func (l *logSource) called(folder string, call *ast.CallExpr) []*ast.FuncDecl {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return l.functions[folder+" "+fun.Name]
	case *ast.SelectorExpr:
		return l.functions[folder+" "+fun.Sel.Name]
	}
	return nil
}

func (l *logSource) addFields(folder string, f *ast.FuncDecl, args []ast.Expr, fields map[string]bool) {
	for _, a := range args {
		if id, ok := a.(*ast.Ident); ok {
			l.fieldsIn(folder, f, id, fields)
			continue
		}
		l.fieldsOf(folder, f, a, fields)
	}
}

// fieldsOf collects the fields made in n. It follows calls within the folder, and variables.
func (l *logSource) fieldsOf(folder string, f *ast.FuncDecl, n ast.Node, fields map[string]bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if name, _ := l.field(call); name != "" {
			fields[name] = true
			return false
		}
		if fun, ok := call.Fun.(*ast.Ident); ok && fun.Name == "append" {
			l.addFields(folder, f, call.Args, fields)
			return false
		}
		for _, g := range l.called(folder, call) {
			if makesFields(g) {
				l.fieldsOf(folder, g, g.Body, fields)
			}
		}
		return true
	})
}

// fieldsIn collects the values assigned to a variable.
func (l *logSource) fieldsIn(folder string, f *ast.FuncDecl, id *ast.Ident, fields map[string]bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || !slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool { x, ok := e.(*ast.Ident); return ok && x.Name == id.Name }) {
			return true
		}
		for _, r := range a.Rhs {
			if call, ok := r.(*ast.CallExpr); ok {
				if fun, ok := call.Fun.(*ast.Ident); ok && fun.Name == "append" {
					for _, arg := range call.Args[1:] {
						l.fieldsOf(folder, f, arg, fields)
					}
					continue
				}
			}
			l.fieldsOf(folder, f, r, fields)
		}
		return true
	})
}

// makesFields reports whether a function returns fields or a logger.
func makesFields(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || f.Body == nil {
		return false
	}
	return slices.ContainsFunc(f.Type.Results.List, func(r *ast.Field) bool {
		e := r.Type
		switch x := e.(type) {
		case *ast.ArrayType:
			e = x.Elt
		case *ast.StarExpr:
			e = x.X
		}
		x, name := member(e)
		return x == "zap" && (name == "Field" || name == "Logger") || x == "zapcore" && name == "Field"
	})
}

// field returns the name of the field that a call makes, and the function that makes it, or "".
func (l *logSource) field(call *ast.CallExpr) (name, kind string) {
	switch x, fun := member(call.Fun); x {
	case "logfield":
		return l.names[fun], "logfield." + fun
	case "zap":
		if len(call.Args) == 0 {
			return "", ""
		}
		if name, ok := literal(call.Args[0]); ok {
			return name, "zap." + fun
		}
		if x, constant := member(call.Args[0]); x == "logfield" {
			return l.names[constant], "zap." + fun
		}
	}
	return "", ""
}

// checkField records a field's function. It refuses names that zap uses itself.
func (l *logSource) checkField(call *ast.CallExpr) {
	if x, fun := member(call.Fun); x == "zap" && fun == "Error" {
		l.t.Errorf("%s: zap.Error names its field \"error\"; use logfield.Err", l.set.Position(call.Pos()))
	}
	name, kind := l.field(call)
	if name == "" {
		return
	}
	if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(name) {
		l.t.Errorf("%s: the field %q has to be words with _ between them", l.set.Position(call.Pos()), name)
	}
	if l.kinds[name] == nil {
		l.kinds[name] = make(map[string]bool)
	}
	l.kinds[name][kind] = true
}

func (l *logSource) add(event, level string, fields map[string]bool, at token.Pos) {
	e := l.events[event]
	if e == nil {
		e = &logEvent{levels: make(map[string]bool), fields: make(map[string]bool)}
		l.events[event] = e
	}
	e.levels[level] = true
	maps.Copy(e.fields, fields)
	e.places = append(e.places, l.set.Position(at).String())
	if len(event) > 60 || strings.ContainsAny(event, ";:.%\n") {
		l.t.Errorf("%s: the event %q has to be a few words; the rest belongs on the page", l.set.Position(at), event)
	}
}

// pageSection returns the text below a heading of a page.
func pageSection(t *testing.T, page, section string) string {
	t.Helper()
	_, text, ok := strings.Cut(repositoryFile(t, page), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", page, section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// pageTable returns the rows of the first table in a section of docs/log-events.md, without head.
func pageTable(t *testing.T, section string) (rows [][]string) {
	t.Helper()
	_, text, _ := strings.Cut(pageSection(t, "docs/log-events.md", section), "\n|---")
	for i, line := range slices.Collect(strings.Lines(text)) {
		if i == 0 {
			continue // the rest of the table's rule
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		rows = append(rows, strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"))
	}
	return rows
}

var backQuoted = regexp.MustCompile("`([^`]+)`")

func quotedIn(cell string) (words []string) {
	for _, m := range backQuoted.FindAllStringSubmatch(cell, -1) {
		words = append(words, m[1])
	}
	return words
}

// TestThePageOfLogEventsIsMadeOfTheCode takes the levels and fields of each event from the source.
// Each event needs a text, and each text an event.
func TestThePageOfLogEventsIsMadeOfTheCode(t *testing.T) {
	source := readLogSource(t)
	if len(source.events) < 60 {
		t.Errorf("found %d events in the code, want more: the test does not see them", len(source.events))
	}
	table := "| event | level | fields | meaning, and what to do |\n|---|---|---|---|\n"
	documented := make(map[string]bool)
	for _, text := range eventTexts {
		fields := make(map[string]bool)
		var levels []string
		for _, event := range text.events {
			documented[event] = true
			logged := source.events[event]
			if logged == nil {
				t.Errorf("eventTexts has the event %q, which is not in the code", event)
				continue
			}
			level := strings.Join(slices.Sorted(maps.Keys(logged.levels)), ", ")
			if !slices.Contains(levels, level) {
				levels = append(levels, level)
			}
			maps.Copy(fields, logged.fields)
		}
		who := ""
		if fields["client"] && fields["conn"] && fields["user"] {
			who = "session, "
			maps.DeleteFunc(fields, func(name string, _ bool) bool { return name == "client" || name == "conn" || name == "user" })
		}
		table += fmt.Sprintf("| %s| %s | %s%s| %s |\n", backQuote(text.events), strings.Join(levels, ", "), who, backQuote(slices.Sorted(maps.Keys(fields))), text.meaning)
	}
	for event, logged := range source.events {
		if !documented[event] {
			t.Errorf("eventTexts does not have the event %q of %v", event, logged.places)
		}
	}
	keepPage(t, "log-events.md", map[string]string{"events": table})
}

// TestEveryLogFieldIsDocumented compares the page's list of fields with the source, in both
// directions. A field must have the same type everywhere.
func TestEveryLogFieldIsDocumented(t *testing.T) {
	source := readLogSource(t)
	for _, name := range []string{"ts", "level", "logger", "event"} { // of every line
		source.kinds[name] = map[string]bool{"zap.String": true}
	}
	documented := make(map[string]bool)
	for _, row := range pageTable(t, "Log fields") {
		for _, name := range quotedIn(row[0]) {
			documented[name] = true
			if source.kinds[name] == nil {
				t.Errorf("docs/log-events.md explains the field %q, which is not in the code", name)
			}
		}
	}
	for name, kinds := range source.kinds {
		if !documented[name] {
			t.Errorf("docs/log-events.md does not explain the field %q", name)
		}
		types := make(map[string]bool)
		for kind := range kinds {
			types[jsonType(kind)] = true
		}
		if len(types) > 1 {
			t.Errorf("the field %q is made by %v, which are not the same type in JSON", name, slices.Sorted(maps.Keys(kinds)))
		}
	}
}

// jsonType returns the JSON type of a field by the function that makes it.
func jsonType(kind string) string {
	_, name, _ := strings.Cut(kind, ".")
	switch name {
	case "String", "Stringer", "NamedError", "Time", "Stack", "User", "Client", "Shard", "Node", "Sequence", "Kind", "SQLState", "Pin", "Err", "ByteString":
		return "text"
	case "Strings":
		return "list"
	case "Bool":
		return "boolean"
	case "Any", "Reflect":
		return "anything"
	}
	if strings.HasPrefix(name, "Int") || strings.HasPrefix(name, "Uint") || strings.HasPrefix(name, "Float") ||
		slices.Contains([]string{"Conn", "Code", "Duration", "Bytes"}, name) {
		return "number"
	}
	return fmt.Sprintf("unknown: %s", kind)
}
