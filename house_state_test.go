package muster_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
)

// No package has mutable state, so that ranks can be goroutines of one test and a process
// can have two worlds. A package-level variable is allowed if it is effectively constant:
// an error, a table, a compiled pattern. The rule as checked:
//
//   - its type and its initial value have no channel, no type of package sync or
//     sync/atomic, and no make or new;
//   - no code of its package assigns to it or to a part of it, increments it, deletes from
//     it, or takes its address.
//
// Tests are exempt. Exceptions are listed here, each with its reason.
var stateExceptions = map[string]string{
	"hook.registered":     "package mpi sets it once, while it is initialized, so that mpi/inspect can call unexported functions",
	"cbinding.registered": "package mpi sets it once, while it is initialized, so that cabi/core can call unexported functions",
	"lib.process":         "it is the shared library of the C interface, which exists once in a process",
	"mpi.joined":          "a process can join each of its jobs only once",
	"mpitest.join":        "a process can join the job that started it only once",
}

func (h *house) checkState(folder string, files []*source) {
	var code []*ast.File
	for _, s := range files {
		if !s.test {
			code = append(code, s.file)
		}
	}
	if len(code) == 0 {
		return
	}
	vars := map[types.Object]bool{}
	info := resolve(h.fset, folder, code)
	for _, file := range code {
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				h.checkVar(folder, spec.(*ast.ValueSpec), info, vars)
			}
		}
	}
	for _, file := range code {
		ast.Inspect(file, func(n ast.Node) bool {
			for _, target := range written(n) {
				if id := root(target); id != nil && vars[info.ObjectOf(id)] {
					h.fault(h.at(n), "changes %s, a package-level variable: keep state in a value that the user creates", id.Name)
				}
			}
			return true
		})
	}
}

// checkVar checks a declaration and records its names.
func (h *house) checkVar(folder string, spec *ast.ValueSpec, info *types.Info, vars map[types.Object]bool) {
	checked := false
	for _, name := range spec.Names {
		if _, excused := stateExceptions[path.Base(folder)+"."+name.Name]; !excused && name.Name != "_" {
			vars[info.ObjectOf(name)] = true
			checked = true
		}
	}
	if !checked {
		return
	}
	for _, expr := range append([]ast.Expr{spec.Type}, spec.Values...) {
		if expr == nil {
			continue
		}
		ast.Inspect(expr, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false // values created when it runs are not package state
			case *ast.ChanType:
				h.fault(h.at(n), "package-level variable %s has a channel", spec.Names[0].Name)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && (x.Name == "sync" || x.Name == "atomic") {
					h.fault(h.at(n), "package-level variable %s is of a mutable type (%s.%s)", spec.Names[0].Name, x.Name, n.Sel.Name)
				}
			case *ast.CallExpr:
				if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "make" || fn.Name == "new") {
					h.fault(h.at(n), "package-level variable %s is initialized with %s, to be filled later", spec.Names[0].Name, fn.Name)
				}
			}
			return true
		})
	}
}

// written returns the expressions that a statement or expression may change.
func written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "delete" || fn.Name == "clear") && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// root returns the variable that an expression like v.f[i] is a part of.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return nil // behind a pointer or a call: not the variable itself
		}
	}
}

// resolve determines which names refer to package-level variables. It does not load the
// imported packages and ignores the resulting errors.
func resolve(fset *token.FileSet, folder string, files []*ast.File) *types.Info {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}, FakeImportC: true}
	_, _ = conf.Check(folder, fset, files, info)
	return info
}

// noImports resolves every import to an empty package.
type noImports struct{}

func (noImports) Import(name string) (*types.Package, error) {
	pkg := types.NewPackage(name, path.Base(name))
	pkg.MarkComplete()
	return pkg, nil
}
