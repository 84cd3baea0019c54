package muster_test

import (
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// Rules about what go doc shows of package mpi, and about package comments.

// maxFields is how many settings a reader of mpi.Config has to look through. OnFailure, the
// latest, decides which errors a program must handle, so it does not belong into Advanced.
const maxFields = 21

func surface() *house {
	h := &house{fset: token.NewFileSet(), folders: map[string][]*source{}}
	h.walk(os.DirFS("."))
	h.faults = nil // TestHouse reports them
	return h
}

// TestSurface checks that the exported API of package mpi does without the types
// and constants of internal packages, of rdma and of the devices.
func TestSurface(t *testing.T) {
	h := surface()
	for _, s := range h.folders["mpi"] {
		if s.test {
			continue
		}
		hidden := map[string]bool{}
		for _, imp := range s.file.Imports {
			name := strings.Trim(imp.Path.Value, `"`)
			ours, isOurs := strings.CutPrefix(name, module+"/")
			if isOurs && (strings.Contains("/"+ours+"/", "/internal/") || ours == "rdma" || strings.HasPrefix(ours, "rdma/")) {
				hidden[name[strings.LastIndex(name, "/")+1:]] = true
			}
		}
		for _, decl := range s.file.Decls {
			for _, part := range exportedParts(decl) {
				ast.Inspect(part, func(n ast.Node) bool {
					if sel, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := sel.X.(*ast.Ident); ok && hidden[x.Name] {
							t.Errorf("%s: the API of package mpi shows %s.%s: declare it in package mpi, or move the function to mpi/inspect", h.at(n), x.Name, sel.Sel.Name)
						}
					}
					return true
				})
			}
		}
	}
}

// exportedParts returns the parts of a declaration that go doc shows: no function
// bodies, no unexported fields and methods.
func exportedParts(decl ast.Decl) (parts []ast.Node) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(root(receiver(d)).Name)) {
			parts = append(parts, d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				if slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
					parts = append(parts, s)
				}
			case *ast.TypeSpec:
				if !s.Name.IsExported() {
					continue
				}
				if s.TypeParams != nil {
					parts = append(parts, s.TypeParams)
				}
				parts = append(parts, exportedMembers(s.Type)...)
			}
		}
	}
	return parts
}

func exportedMembers(typ ast.Expr) (parts []ast.Node) {
	var members *ast.FieldList
	switch t := typ.(type) {
	case *ast.StructType:
		members = t.Fields
	case *ast.InterfaceType:
		members = t.Methods
	default:
		return []ast.Node{typ}
	}
	for _, f := range members.List {
		if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
			parts = append(parts, f)
		}
	}
	return parts
}

// receiver is the type of a method's receiver without the pointer.
func receiver(d *ast.FuncDecl) ast.Expr {
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	return typ
}

func TestConfigFields(t *testing.T) {
	for _, s := range surface().folders["mpi"] {
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || s.test || spec.Name.Name != "Config" && spec.Name.Name != "Advanced" {
				return true
			}
			if n := spec.Type.(*ast.StructType).Fields.NumFields(); n > maxFields {
				t.Errorf("mpi.%s has %d fields, the limit is %d: move the ones that few programs set", spec.Name.Name, n, maxFields)
			}
			return false
		})
	}
}

// TestPackageComments checks that go doc shows doc.go alone: a comment attached to
// the package clause of another file would be added to it.
func TestPackageComments(t *testing.T) {
	for _, files := range surface().folders {
		for _, s := range files {
			if !s.test && s.file.Doc != nil && !s.isFront() {
				t.Errorf("%s: a comment is attached to the package clause: put it below, or into doc.go", s.path)
			}
		}
	}
}
