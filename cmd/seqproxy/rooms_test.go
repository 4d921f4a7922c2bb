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

// mostMethods is the largest interface through which a type may see the one above it.
const mostMethods = 5

// floor is a type of a package, and the types and packages that stand below it. A package stands
// for all of its types.
type floor struct {
	above string // "proxy/session.Session"
	below []string
}

// floors are those of the module. A type sees the one above it, if at all, through a small
// interface that it declares itself.
var floors = []floor{
	{"proxy/session.Session", []string{
		"proxy/alone", "proxy/hangup", "proxy/keys", "proxy/kill", "proxy/login", "proxy/params", "proxy/plan", "proxy/shown", "proxy/state", "proxy/stats", "proxy/ticket",
		"proxy/session.client", "proxy/session.batch", "proxy/session.attachment", "proxy/session.backends", "proxy/session.outside", "proxy/session.idleness", "proxy/session.relay", "proxy/session.ground", "proxy/session.slow", "proxy/session.memoryShare", "proxy/session.order", "proxy/session.facts", "proxy/session.planning", "proxy/session.answers", "proxy/session.tickets", "proxy/session.explanation", "proxy/session.delivery", "proxy/session.texts", "proxy/session.executor",
		"proxy/session.preparedSet", "proxy/session.prepared", "proxy/session.Settings", "proxy/session.bindings",
	}},
	{"proxy.Server", []string{"proxy/hangup", "proxy/keys", "proxy/kill", "proxy/login", "proxy/session", "proxy/stats"}},
	{"proxy/session.executor", []string{"proxy/session.texts", "proxy/session.delivery", "proxy/session.tickets", "proxy/session.answers", "proxy/session.planning", "proxy/session.relay", "proxy/session.attachment", "proxy/session.prepared"}},
	{"proxy/session.texts", []string{"proxy/session.order", "proxy/session.explanation", "proxy/session.delivery", "proxy/session.tickets", "proxy/session.answers", "proxy/session.planning", "proxy/session.relay", "proxy/session.attachment"}},
	{"proxy/session.delivery", []string{"proxy/session.answers", "proxy/session.planning", "proxy/session.relay", "proxy/session.attachment"}},
	{"proxy/session.explanation", []string{"proxy/session.tickets", "proxy/session.planning", "proxy/session.relay", "proxy/session.attachment"}},
	{"proxy/session.tickets", []string{"proxy/session.answers", "proxy/session.planning", "proxy/session.relay", "proxy/session.attachment"}},
	{"proxy/session.answers", []string{"proxy/session.planning", "proxy/session.relay", "proxy/session.attachment"}},
	{"proxy/session.planning", []string{"proxy/session.facts", "proxy/session.ground", "proxy/session.relay", "proxy/session.attachment", "proxy/session.backends", "proxy/session.client"}},
	{"proxy/session.relay", []string{"proxy/session.attachment", "proxy/session.backends", "proxy/session.batch", "proxy/session.client", "proxy/session.memoryShare", "proxy/session.slow", "proxy/session.idleness"}},
	{"proxy/session.attachment", []string{"proxy/session.backends", "proxy/session.client", "proxy/session.outside", "proxy/session.prepared", "proxy/session.preparedSet", "proxy/session.Settings"}},
	{"proxy/session.backends", []string{"proxy/session.client", "proxy/session.outside", "proxy/session.preparedSet"}},
	{"sequence.Sequences", []string{"sequence/cache", "sequence/stats", "sequence/follow", "sequence/members", "sequence.ownedColumns", "sequence.machineClock", "sequence/agree", "sequence/member", "sequence/group", "sequence/steps", "sequence/store", "sequence/link", "sequence/change", "sequence/floor", "sequence/snowflake", "sequence/ticket"}},
	{"sequence.sequence", []string{"sequence/cache", "sequence/stats"}},
	{"sequence/ticket.Tables", []string{"sequence/ticket.Counter", "sequence/cache", "sequence/member"}},
	{"sequence/cache.Cache", []string{"sequence/cache.stock", "sequence/cache.line", "sequence/cache.alarm", "sequence/cache.sizes", "sequence/cache.counter", "sequence/cache.exhaustion", "sequence/cache.batches", "sequence/cache.gathering"}},
	{"sequence/follow.Follower", []string{"sequence/follow.Following", "sequence/members", "sequence/member", "sequence/store"}},
	{"sequence/members.Members", []string{"sequence/members.View", "sequence/agree", "sequence/steps", "sequence/member", "sequence/group", "sequence/store", "sequence/link"}},
	{"sequence/agree.Definitions", []string{"sequence/agree.Agreed", "sequence/agree.edit", "sequence/member", "sequence/group", "sequence/store", "sequence/link"}},
	{"sequence/member.Several", []string{"sequence/member.Server", "sequence/group", "sequence/store", "sequence/link"}},
	{"sequence/member.Server", []string{"sequence/group", "sequence/store", "sequence/link"}},
	{"sequence/group.Ceilings", []string{"sequence/store", "sequence/link"}},
	{"sequence/steps.Store", []string{"sequence/store"}},
	{"sequence/store.Store", []string{
		"sequence/store.LimitTable", "sequence/store.OptionTable", "sequence/store.PlanTable", "sequence/store.ProxyTable", "sequence/store.Schema", "sequence/link",
	}},
	{"sequence/store.Schema", []string{"sequence/link"}},
}

// setLater are the fields with functions that are set after construction, and why. A function that
// ends a context is no way up, and not listed.
var setLater = map[string]string{
	"backend.Examined.Ask":              "the answer of who has just dialed: it asks on that connection",
	"protocol.Conn.stopAhead":           "ends what the connection itself has begun",
	"protocol.RelayedLogin.AwaitServer": "how long a server may take is known when it is dialed",
	"protocol.socket.onBlocked":         "the reader of the same connection, in its constructor",
	"protocol.socket.readFn":            "a method of itself, in its constructor: a method value would be an allocation for each read",
	"protocol.socket.writeFn":           "as readFn",
	"proxy/session.texts.afterAnswer":   "a statement about the proxy asks for what is done once its answer is sent",
	"sequence.Options.wall":             "the default of an option, in a copy that nobody else has yet",
	"sequence/store.Taking.Numbers":     "a statement of one reservation is put together by who knows how its servers count",
}

// TestNoTypeReachesUp reads the fields of each type, and what its methods take.
func TestNoTypeReachesUp(t *testing.T) {
	m := readModule(t)
	for _, finding := range m.reachesUp(t, floors) {
		t.Error(finding)
	}
}

// TestNoFunctionIsSetAfterConstruction: a function that is set later is a way up without an import.
func TestNoFunctionIsSetAfterConstruction(t *testing.T) {
	m := readModule(t)
	found := make(map[string]bool)
	for _, path := range m.rooms() {
		for field, where := range m.setsFunctions(t, path) {
			found[field] = true
			if setLater[field] == "" {
				t.Errorf("%s: %s is a function that is set after construction", where, field)
			}
		}
	}
	for field := range setLater {
		if !found[field] {
			t.Errorf("%s is listed, and is not set after construction", field)
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
	up := m.reachesUp(t, []floor{{planted + ".upper", []string{
		planted + ".embeds", planted + ".points", planted + ".holds", planted + ".reaches", planted + ".takes", planted + ".asks",
	}}})
	for i, want := range []string{"asks", "embeds", "holds", "points", "reaches", "takes"} {
		if want == "asks" { // allowed, through a small interface
			if slices.ContainsFunc(up, func(f string) bool { return strings.Contains(f, "planted.asks") }) {
				t.Error("a type that sees four methods of the one above it is reported")
			}
			continue
		}
		if len(up) < i || !strings.Contains(up[i-1], "planted."+want+" ") {
			t.Errorf("got %q, want one about %s", up, want)
		}
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
	exported := make(map[string]string)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		path, file, _ := strings.Cut(lines.Text(), " ")
		exported[path] = file
	}
	m := &module{fset: token.NewFileSet(), found: make(map[string]bool), checked: make(map[string]*checkedPackage)}
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

// named returns the types that a name of a floor means: one type, or all of a package.
func (m *module) named(t *testing.T, name string) (all []*types.Named) {
	t.Helper()
	folder, one := name, ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		folder, one = name[:dot], name[dot+1:]
	}
	scope := m.read(t, folder).types.Scope()
	for _, name := range scope.Names() {
		object, isType := scope.Lookup(name).(*types.TypeName)
		if !isType || object.IsAlias() || one != "" && name != one {
			continue
		}
		if named, ok := object.Type().(*types.Named); ok {
			all = append(all, named)
		}
	}
	if len(all) == 0 {
		t.Errorf("the floors have %s, which does not exist", name)
	}
	return all
}

// reachesUp returns, in order, each type that sees the one above it other than through a small
// interface.
func (m *module) reachesUp(t *testing.T, floors []floor) (findings []string) {
	t.Helper()
	for _, f := range floors {
		above := m.named(t, f.above)[0]
		for _, name := range f.below {
			for _, below := range m.named(t, name) {
				if below == above {
					continue
				}
				if by := seenBy(below, above); by != "" {
					findings = append(findings, fmt.Sprintf("%s sees %s, which stands above it: %s", typeName(below), f.above, by))
				}
			}
		}
	}
	slices.Sort(findings)
	return findings
}

func typeName(n *types.Named) string {
	return strings.TrimPrefix(n.Obj().Pkg().Path(), "seqproxy/") + "." + n.Obj().Name()
}

// seenBy returns how a type sees another: a field of it, or a parameter of a method; "" if it does
// not.
func seenBy(below, above *types.Named) string {
	if structure, ok := below.Underlying().(*types.Struct); ok {
		for i := range structure.NumFields() {
			if way := wayTo(structure.Field(i).Type(), above, nil); way != "" {
				return "the field " + structure.Field(i).Name() + " " + way
			}
		}
	}
	for i := range below.NumMethods() {
		method := below.Method(i)
		takes := method.Signature().Params()
		for j := range takes.Len() {
			if way := wayTo(takes.At(j).Type(), above, nil); way != "" {
				return "the method " + method.Name() + " takes what " + way
			}
		}
	}
	return ""
}

// wayTo returns how a type leads to a named one, "" if it does not: through pointers, lists, maps,
// channels, functions and structs without a name. It does not look into named types.
func wayTo(typ types.Type, to *types.Named, seen []types.Type) string {
	if slices.Contains(seen, typ) {
		return ""
	}
	seen = append(seen, typ)
	switch typ := types.Unalias(typ).(type) {
	case *types.Named:
		if typ == to || typ.Origin() == to {
			return "is one"
		}
		for i := range typ.TypeArgs().Len() { // atomic.Pointer[T]
			if way := wayTo(typ.TypeArgs().At(i), to, seen); way != "" {
				return way
			}
		}
		face, ok := typ.Underlying().(*types.Interface)
		if !ok || face.NumMethods() <= mostMethods || !types.Implements(types.NewPointer(to), face) {
			return ""
		}
		return fmt.Sprintf("is an interface of %d methods of it", face.NumMethods())
	case *types.Interface:
		if typ.NumMethods() > mostMethods && types.Implements(types.NewPointer(to), typ) {
			return fmt.Sprintf("is an interface of %d methods of it", typ.NumMethods())
		}
	case *types.Pointer:
		return wayTo(typ.Elem(), to, seen)
	case *types.Slice:
		return wayTo(typ.Elem(), to, seen)
	case *types.Array:
		return wayTo(typ.Elem(), to, seen)
	case *types.Chan:
		return wayTo(typ.Elem(), to, seen)
	case *types.Map:
		if way := wayTo(typ.Key(), to, seen); way != "" {
			return way
		}
		return wayTo(typ.Elem(), to, seen)
	case *types.Signature:
		for _, tuple := range []*types.Tuple{typ.Params(), typ.Results()} {
			for i := range tuple.Len() {
				if way := wayTo(tuple.At(i).Type(), to, seen); way != "" {
					return way
				}
			}
		}
	case *types.Struct:
		for i := range typ.NumFields() {
			if way := wayTo(typ.Field(i).Type(), to, seen); way != "" {
				return way
			}
		}
	}
	return ""
}

// setsFunctions returns the fields of the module's structs that are functions and that a package
// sets by an assignment, each with one place.
func (m *module) setsFunctions(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	p := m.read(t, folder)
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			assignment, ok := n.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for i, to := range assignment.Lhs {
				selector, ok := to.(*ast.SelectorExpr)
				if !ok {
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
		})
	}
	return found
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
