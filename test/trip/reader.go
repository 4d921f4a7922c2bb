package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// hub is the room in which a command lives: there a reader follows it function by function. Of
// every other room he reads what is called from outside of it, and stops there.
const hub = "proxy/session"

// module is the import path of this module.
const module = "seqproxy"

// calls says which functions of the module each of its functions calls, both as "room name", such
// as "protocol *Conn.Write". What is called through an interface is "*.Write", in no room, or
// "protocol *.take" if only types of that room can have the method.
type calls map[string][]string

// reader counts what somebody reads who follows a command: the files of the functions that run in
// the hub, or are called in another room from outside of it; and those of these functions that call
// one of ours which runs. So accessors and other leaves count as files alone.
func (c calls) reader(functions []string) (read map[string]bool, files int) {
	rooms := make(map[string]string)     // of what runs, by "room name"
	methods := make(map[string][]string) // what runs for a call through an interface
	for _, f := range functions {
		key, room := keyOf(f), path.Dir(f)
		rooms[key] = room
		if _, method, ok := strings.Cut(key, "."); ok {
			at := methodOf(room, method)
			methods[at] = append(methods[at], key)
		}
	}
	run := func(from string) (all []string) {
		for _, to := range c[from] {
			all = append(all, methods[to]...)
			if _, ok := rooms[to]; ok {
				all = append(all, to)
			}
		}
		return all
	}
	outside := make(map[string]bool)
	for from, room := range rooms {
		for _, to := range run(from) {
			outside[to] = outside[to] || rooms[to] != room
		}
	}
	names := make(map[string]bool)
	read = make(map[string]bool)
	for _, f := range functions {
		key := keyOf(f)
		if rooms[key] != hub && !outside[key] {
			continue
		}
		name, _, _ := strings.Cut(f, ":")
		names[name] = true
		if len(run(key)) > 0 {
			read[f] = true
		}
	}
	return read, len(names)
}

// keyOf is what calls say for a function that ran, "file:line name".
func keyOf(function string) string {
	at, name, _ := strings.Cut(function, " ")
	return path.Dir(at) + " " + name
}

// methodOf is how calls name a method that is called through an interface.
func methodOf(room, method string) string {
	if token.IsExported(method) {
		return "*." + method
	}
	return room + " *." + method
}

// readCalls reads the calls of every package of the module that pkg links.
func readCalls(ctx context.Context, pkg string) (calls, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-deps", "-export", "-json=ImportPath,Dir,GoFiles,Export", pkg).Output()
	if err != nil {
		return nil, err
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
	}
	var packages []listed
	exports := make(map[string]string)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, module+"/") {
			packages = append(packages, p)
		}
	}
	set := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	c := make(calls)
	for _, p := range packages {
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, file)
		}
		info := &types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}
		if _, err := config.Check(p.ImportPath, set, files, info); err != nil {
			return nil, fmt.Errorf("check %s: %w", p.ImportPath, err)
		}
		for _, file := range files {
			c.add(file, info)
		}
	}
	return c, nil
}

// add adds the calls of the functions in a file.
func (c calls) add(file *ast.File, info *types.Info) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		from := nameOf(info.Defs[f.Name].(*types.Func))
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if to, ok := info.Uses[id].(*types.Func); ok && to.Pkg() != nil && strings.HasPrefix(to.Pkg().Path(), module+"/") {
					c[from] = append(c[from], nameOf(to))
				}
			}
			return true
		})
	}
}

// nameOf is how calls name a function.
func nameOf(f *types.Func) string {
	name, room := f.Name(), strings.TrimPrefix(f.Pkg().Path(), module+"/")
	if receiver := f.Signature().Recv(); receiver != nil {
		typ, star := receiver.Type(), ""
		if p, ok := typ.(*types.Pointer); ok {
			typ, star = p.Elem(), "*"
		}
		if types.IsInterface(typ) {
			return methodOf(room, name)
		}
		if named, ok := typ.(*types.Named); ok {
			name = star + named.Obj().Name() + "." + name
		}
	}
	return room + " " + name
}
