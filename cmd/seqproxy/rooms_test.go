package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// mostMethods is the largest interface through which a type may see the one above it: the one that
// has it.
const mostMethods = 5

// givenAbove are types that are given one that has them, and why.
var givenAbove = map[string]string{
	"backend.ShardSet given backend.Shard":                  "a shard has the set of itself alone, so that the common case takes no memory",
	"sequence.Sequences given sequence.request":             "a request is Sequences with the time of one caller",
	"sequence/agree.lockedName given sequence/agree.Agreed": "the row of a member is compared with those of the others",
	"sequence/member.Server given sequence/member.Among":    "a member reserves in sight of the others",
}

// TestNoTypeReachesUp: what a type has does not lead back to it, and is not given it. A type sees
// the one above it, if at all, through a small interface.
func TestNoTypeReachesUp(t *testing.T) {
	m := readModule(t)
	ways := m.ways(t, m.linked)
	for _, rule := range []struct {
		found  map[string]string
		except map[string]string
	}{{ways.eachOther(), nil}, {ways.givenAbove(), givenAbove}} {
		for types, how := range rule.found {
			if rule.except[types] == "" {
				t.Errorf("%s: %s", types, how)
			}
		}
		for types := range rule.except {
			if rule.found[types] == "" {
				t.Errorf("%s: listed, and not so", types)
			}
		}
	}
}

// TestNoFunctionIsSetAfterConstruction: a function that is set later is a way up without an import.
func TestNoFunctionIsSetAfterConstruction(t *testing.T) {
	m := readModule(t)
	for _, path := range m.rooms() {
		for field, where := range m.setsFunctions(t, path) {
			t.Errorf("%s: %s is a function that is set after construction", where, field)
		}
	}
}

// TestWhatDecidesIsPure: plan and state import nothing that waits or does I/O, and receive only
// data. Only state knows durations, and keeps the values of variables, which are numbers or texts.
func TestWhatDecidesIsPure(t *testing.T) {
	m := readModule(t)
	findings := append(m.impure(t, "proxy/plan", "Facts"), m.impure(t, "proxy/state", "State")...)
	for _, finding := range findings {
		if finding != "proxy/state imports time" && finding != "State.here is an interface" {
			t.Error(finding)
		}
	}
}

// TestNoInterfaceAsksForMuch: a caller that needs more of a type names the parts that it passes on.
func TestNoInterfaceAsksForMuch(t *testing.T) {
	m := readModule(t)
	for _, path := range m.rooms() {
		for _, finding := range m.largeInterfaces(t, path) {
			t.Error(finding)
		}
	}
}

// startsAt finds the name in the comment of a package where reading starts.
var startsAt = regexp.MustCompile(`\bStart (?:at|from)\s+\[?(\w+)`)

// TestEachRoomSaysWhereToStart: the comment of each package names something that is declared there.
// Rooms have it in a doc.go.
func TestEachRoomSaysWhereToStart(t *testing.T) {
	m := readModule(t)
	if len(m.found) < 60 {
		t.Errorf("found %d folders, want more: the test does not see them", len(m.found))
	}
	for path := range m.found {
		text, names := commentOf(t, "../../"+path)
		start := startsAt.FindStringSubmatch(text)
		switch {
		case start == nil:
			t.Errorf("the comment of %s does not say where to start", path)
		case !names[start[1]]:
			t.Errorf("the comment of %s says to start at %s, which does not exist", path, start[1])
		}
	}
	for _, path := range m.rooms() {
		if _, err := os.Stat("../../" + path + "/doc.go"); err != nil {
			t.Error(err)
		}
	}
}

// commentOf returns the comment of the package in a folder, and what is declared there outside of
// functions, with methods, also in tests.
func commentOf(t *testing.T, folder string) (text string, names map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", folder, err)
	}
	names = make(map[string]bool)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		text += file.Doc.Text()
		for _, declared := range file.Decls {
			switch declared := declared.(type) {
			case *ast.FuncDecl:
				names[declared.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range declared.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names[spec.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							names[name.Name] = true
						}
					}
				}
			}
		}
	}
	return text, names
}

// TestThatEachOfTheseRulesCanBeBroken checks a package that breaks each rule.
func TestThatEachOfTheseRulesCanBeBroken(t *testing.T) {
	const planted = "cmd/seqproxy/testdata/rooms/planted"
	m := readModule(t)
	ways := m.ways(t, []string{planted})
	var want []string
	for _, name := range []string{"deep", "embeds", "holds", "points", "reaches", "upper", "way"} {
		want = append(want, planted+"."+name)
	}
	if circles := ways.eachOther(); len(circles) != 1 || circles[strings.Join(want, " ")] == "" {
		t.Errorf("types that lead to each other: got %v, want all of %v", circles, want)
	}
	if given := ways.givenAbove(); len(given) != 1 || given[planted+".takes given "+planted+".upper"] == "" {
		t.Errorf("types that are given what has them: got %v, want takes", given)
	}
	set := m.setsFunctions(t, planted)
	if len(set) != 1 || set[planted+".reaches.later"] == "" {
		t.Errorf("functions that are set after construction: got %v, want the one of reaches", set)
	}
	if large := m.largeInterfaces(t, planted); len(large) != 1 || !strings.Contains(large[0], "large lists 6") {
		t.Errorf("large interfaces: got %q, want the one of 6 methods", large)
	}
	impure := m.impure(t, planted, "Facts")
	for _, want := range []string{"imports context", "Facts.Ask is a function", "Facts.Inner.Any is an interface", "Facts.List is an interface"} {
		if !slices.ContainsFunc(impure, func(f string) bool { return strings.Contains(f, want) }) {
			t.Errorf("got %q, want one with %q", impure, want)
		}
	}
}

// module is the packages of the module, read from source, in one world of types.
type module struct {
	fset    *token.FileSet
	found   map[string]bool // folders that exist
	checked map[string]*checkedPackage
	others  types.Importer // packages outside of the module, from the compiler's export data
	linked  []string       // the folders of the packages of the program
}

type checkedPackage struct {
	files []*ast.File
	types *types.Package
	info  *types.Info
}

// theModule is read once, by tests that do not run at the same time.
var theModule = sync.OnceValues(loadModule)

func readModule(t *testing.T) *module {
	t.Helper()
	m, err := theModule()
	if err != nil {
		t.Fatal(err)
	}
	for path := range packagesImported(t) {
		m.found[path] = true
	}
	return m
}

func loadModule() (*module, error) {
	list := exec.Command("go", "list", "-deps", "-export", "-f", "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}", "./cmd/seqproxy")
	list.Dir = "../.."
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	m := &module{fset: token.NewFileSet(), found: make(map[string]bool), checked: make(map[string]*checkedPackage)}
	exported := make(map[string]string)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		path, file, _ := strings.Cut(lines.Text(), " ")
		exported[path] = file
		if folder, ours := strings.CutPrefix(path, "seqproxy/"); ours {
			m.linked = append(m.linked, folder)
		}
	}
	m.others = importer.ForCompiler(m.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exported[path] == "" {
			return nil, fmt.Errorf("package %s is not among what the program links", path)
		}
		return os.Open(exported[path])
	})
	return m, nil
}

// Import makes a module the importer of its own packages.
func (m *module) Import(path string) (*types.Package, error) {
	folder, ours := strings.CutPrefix(path, "seqproxy/")
	if !ours {
		return m.others.Import(path)
	}
	p, err := m.check(folder)
	if err != nil {
		return nil, err
	}
	return p.types, nil
}

// rooms are the folders that the rules are about.
func (m *module) rooms() (folders []string) {
	for path := range m.found {
		top, _, _ := strings.Cut(path, "/")
		switch top {
		case "admin", "backend", "protocol", "proxy", "sequence", "statement":
			folders = append(folders, path)
		}
	}
	slices.Sort(folders)
	return folders
}

// check reads a package of the module, without tests, as it is built here without tags.
func (m *module) check(folder string) (*checkedPackage, error) {
	if p := m.checked[folder]; p != nil {
		return p, nil
	}
	names, err := filepath.Glob("../../" + folder + "/*.go")
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%s: no files, %v", folder, err)
	}
	p := &checkedPackage{info: &types.Info{Selections: make(map[*ast.SelectorExpr]*types.Selection)}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if built, err := build.Default.MatchFile(filepath.Split(name)); err != nil {
			return nil, err
		} else if !built {
			continue
		}
		file, err := parser.ParseFile(m.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, file)
	}
	config := types.Config{Importer: m}
	if p.types, err = config.Check("seqproxy/"+folder, m.fset, p.files, p.info); err != nil {
		return nil, err
	}
	m.checked[folder] = p
	return p, nil
}

// read reads a package, and fails the test if it cannot.
func (m *module) read(t *testing.T, folder string) *checkedPackage {
	t.Helper()
	p, err := m.check(folder)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ways are how named types lead to others: by "the field x", say.
type ways map[*types.Named]map[*types.Named]string

// ways returns those between all types of some packages.
func (m *module) ways(t *testing.T, folders []string) ways {
	t.Helper()
	w := make(ways)
	for _, folder := range folders {
		scope := m.read(t, folder).types.Scope()
		for _, name := range scope.Names() {
			object, isType := scope.Lookup(name).(*types.TypeName)
			if !isType || object.IsAlias() {
				continue
			}
			if named, ok := object.Type().(*types.Named); ok {
				w[named] = make(map[*types.Named]string)
			}
		}
	}
	for from := range w {
		add := func(to *types.Named, how string) {
			if to != from && w[to] != nil {
				w[from][to] = how
			}
		}
		structure, ok := from.Underlying().(*types.Struct)
		if !ok {
			w.mentions(from, from.Underlying(), func(to *types.Named) { add(to, "what it is") })
			continue
		}
		for field := range structure.Fields() {
			w.mentions(from, field.Type(), func(to *types.Named) { add(to, "the field "+field.Name()) })
		}
	}
	return w
}

// mentions calls found for the named types that a type in another one is made of: through pointers,
// lists, maps, channels, functions, and structs without a name. An interface of many methods stands
// for all types that have them, unless the other one wraps it and has them, too.
func (w ways) mentions(in *types.Named, typ types.Type, found func(*types.Named)) {
	switch typ := types.Unalias(typ).(type) {
	case *types.Named:
		if face, ok := typ.Underlying().(*types.Interface); ok && w[typ.Origin()] != nil {
			w.mentions(in, face, found)
			return
		}
		found(typ.Origin())
		for arg := range typ.TypeArgs().Types() { // atomic.Pointer[T]
			w.mentions(in, arg, found)
		}
	case *types.Interface:
		if typ.NumMethods() <= mostMethods || implements(in, typ) {
			return
		}
		for named := range w {
			if implements(named, typ) {
				found(named)
			}
		}
	case *types.Map:
		w.mentions(in, typ.Key(), found)
		w.mentions(in, typ.Elem(), found)
	case interface{ Elem() types.Type }: // a pointer, a list, a channel
		w.mentions(in, typ.Elem(), found)
	case *types.Signature:
		w.mentions(in, typ.Params(), found)
		w.mentions(in, typ.Results(), found)
	case *types.Tuple:
		for v := range typ.Variables() {
			w.mentions(in, v.Type(), found)
		}
	case *types.Struct:
		for field := range typ.Fields() {
			w.mentions(in, field.Type(), found)
		}
	}
}

func implements(named *types.Named, face *types.Interface) bool {
	return !types.IsInterface(named) && named.TypeParams().Len() == 0 && types.Implements(types.NewPointer(named), face)
}

// eachOther returns the types that lead to each other, in any number of steps, and how.
func (w ways) eachOther() map[string]string {
	found := make(map[string]string)
	for from := range w {
		var names, steps []string
		around := w.reach(from)
		if !around[from] {
			continue
		}
		for other := range around {
			if !w.reach(other)[from] {
				delete(around, other)
			}
		}
		for other := range around {
			names = append(names, typeName(other))
			for to, how := range w[other] {
				if around[to] {
					steps = append(steps, fmt.Sprintf("%s has %s by %s", other.Obj().Name(), to.Obj().Name(), how))
				}
			}
		}
		slices.Sort(names)
		slices.Sort(steps)
		found[strings.Join(names, " ")] = strings.Join(steps, "; ")
	}
	return found
}

// reach returns the types that one leads to: itself, if they lead back.
func (w ways) reach(from *types.Named) map[*types.Named]bool {
	reached := make(map[*types.Named]bool)
	var visit func(*types.Named)
	visit = func(at *types.Named) {
		for to := range w[at] {
			if !reached[to] {
				reached[to] = true
				visit(to)
			}
		}
	}
	visit(from)
	return reached
}

// givenAbove returns the types of which a method takes a type of the package that has them, and the
// method. A type of another package stands below, as it is imported.
func (w ways) givenAbove() map[string]string {
	found := make(map[string]string)
	for above, has := range w {
		for below := range has {
			if below.Obj().Pkg() != above.Obj().Pkg() {
				continue
			}
			for method := range below.Methods() {
				w.mentions(below, method.Signature().Params(), func(given *types.Named) {
					if given == above {
						found[typeName(below)+" given "+typeName(above)] = "to " + method.Name()
					}
				})
			}
		}
	}
	return found
}

func typeName(n *types.Named) string {
	return strings.TrimPrefix(n.Obj().Pkg().Path(), "seqproxy/") + "." + n.Obj().Name()
}

// setsFunctions returns the fields of the module's structs that are functions and that a package
// sets by an assignment, each with one place. A function that ends a context does not count, nor
// does an assignment in the function that makes the struct.
func (m *module) setsFunctions(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	p := m.read(t, folder)
	var made map[types.Object]bool // by the function that is looked at
	var look func(n ast.Node) bool
	look = func(n ast.Node) bool {
		var body *ast.BlockStmt
		switch n := n.(type) {
		case *ast.FuncDecl:
			body = n.Body
		case *ast.FuncLit:
			body = n.Body
		}
		if body != nil {
			outer := made
			made = make(map[types.Object]bool)
			ast.Inspect(body, look)
			made = outer
			return false
		}
		assignment, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, to := range assignment.Lhs {
			if name, ok := to.(*ast.Ident); ok && len(assignment.Rhs) == len(assignment.Lhs) && isLiteral(assignment.Rhs[i]) {
				made[p.info.ObjectOf(name)] = true
			}
			selector, ok := to.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if name, ok := selector.X.(*ast.Ident); ok && made[p.info.Uses[name]] {
				continue
			}
			field := p.info.Selections[selector]
			if field == nil || field.Kind() != types.FieldVal {
				continue
			}
			if _, is := field.Type().Underlying().(*types.Signature); !is || strings.HasPrefix(types.Unalias(field.Type()).String(), "context.Cancel") {
				continue
			}
			owner := ownerOf(field)
			if owner == nil || !strings.HasPrefix(owner.Obj().Pkg().Path(), "seqproxy/") {
				continue // how a library is configured
			}
			if len(assignment.Rhs) == len(assignment.Lhs) && isNil(assignment.Rhs[i]) {
				continue // the assignment of nil
			}
			found[typeName(owner)+"."+selector.Sel.Name] = m.fset.Position(to.Pos()).String()
		}
		return true
	}
	for _, file := range p.files {
		ast.Inspect(file, look)
	}
	return found
}

// isLiteral reports whether an expression makes a struct, or a pointer to a new one.
func isLiteral(e ast.Expr) bool {
	if of, ok := e.(*ast.UnaryExpr); ok && of.Op == token.AND {
		e = of.X
	}
	_, ok := e.(*ast.CompositeLit)
	return ok
}

// largeInterfaces returns the interfaces of a package that list more methods than a caller should
// need. An embedded interface does not count.
func (m *module) largeInterfaces(t *testing.T, folder string) (findings []string) {
	t.Helper()
	for _, file := range m.read(t, folder).files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			face, ok := spec.Type.(*ast.InterfaceType)
			if !ok {
				return true
			}
			methods := 0
			for _, listed := range face.Methods.List {
				methods += len(listed.Names)
			}
			if methods > mostMethods {
				findings = append(findings, fmt.Sprintf("%s: %s lists %d methods", m.fset.Position(spec.Pos()), spec.Name.Name, methods))
			}
			return true
		})
	}
	return findings
}

func isNil(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "nil"
}

// ownerOf returns the struct that declares a field; nil if that has no name.
func ownerOf(field *types.Selection) *types.Named {
	typ := field.Recv()
	var owner *types.Named
	for _, i := range field.Index() {
		if pointer, ok := types.Unalias(typ).Underlying().(*types.Pointer); ok {
			typ = pointer.Elem()
		}
		owner, _ = types.Unalias(typ).(*types.Named)
		typ = typ.Underlying().(*types.Struct).Field(i).Type()
	}
	return owner
}

// impure returns the imports and facts that keep a deciding package from being pure.
func (m *module) impure(t *testing.T, folder, facts string) (findings []string) {
	t.Helper()
	never := []string{"context", "net", "time", "sync", "os", "io", "seqproxy/backend", "seqproxy/sequence"}
	p := m.read(t, folder)
	for _, imported := range p.types.Imports() {
		within := func(path string) bool { return imported.Path() == path || strings.HasPrefix(imported.Path(), path+"/") }
		if slices.ContainsFunc(never, within) {
			findings = append(findings, folder+" imports "+imported.Path())
		}
	}
	object := p.types.Scope().Lookup(facts)
	if object == nil {
		t.Fatalf("%s has no %s", folder, facts)
	}
	return append(findings, notData(object.Type(), facts, nil)...)
}

// notData returns the parts of a type that are no data: functions and interfaces, at any depth.
func notData(typ types.Type, path string, seen []types.Type) (findings []string) {
	if slices.Contains(seen, typ) {
		return nil
	}
	seen = append(seen, typ)
	switch typ := typ.Underlying().(type) {
	case *types.Signature:
		return []string{path + " is a function"}
	case *types.Interface:
		return []string{path + " is an interface"}
	case *types.Chan:
		return []string{path + " is a channel"}
	case *types.Pointer:
		return notData(typ.Elem(), path, seen)
	case *types.Slice:
		return notData(typ.Elem(), path, seen)
	case *types.Array:
		return notData(typ.Elem(), path, seen)
	case *types.Map:
		return append(notData(typ.Key(), path, seen), notData(typ.Elem(), path, seen)...)
	case *types.Struct:
		for i := range typ.NumFields() {
			findings = append(findings, notData(typ.Field(i).Type(), path+"."+typ.Field(i).Name(), seen)...)
		}
	}
	return findings
}
