package muster_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/settings"
)

// The table of docs/reference/settings.md is made from the fields of mpi.Config: their
// names, tags and comments.

var writePages = flag.Bool("pages.write", false, "write the table of "+settingsPage+" anew")

const (
	settingsPage  = "docs/reference/settings.md"
	settingsBegin = "<!-- table of settings -->\n"
	settingsEnd   = "<!-- end -->\n"
)

func TestSettingsPage(t *testing.T) {
	page, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), settingsBegin)
	_, after, ok2 := strings.Cut(rest, settingsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q", settingsPage, settingsBegin, settingsEnd)
	}
	table, err := settingsTable(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	want := before + settingsBegin + table + settingsEnd + after
	if want == string(page) {
		return
	}
	if !*writePages {
		t.Fatalf("%s is not what mpi.Config documents: go test . -run TestSettingsPage -pages.write, and review the difference", settingsPage)
	}
	if err := os.WriteFile(settingsPage, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// settingsTable has a row for each field of mpi.Config, and of the structs in it.
func settingsTable(tree fs.FS) (string, error) {
	structs := map[string]*ast.StructType{}
	files, err := fs.Glob(tree, "mpi/*.go")
	if err != nil {
		return "", err
	}
	for _, p := range files {
		text, err := fs.ReadFile(tree, p)
		if err != nil || strings.HasSuffix(p, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path.Base(p), text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok {
					if st, ok := ts.Type.(*ast.StructType); ok {
						structs[ts.Name.Name] = st
					}
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString("|variable|field|default|values|meaning|\n|---|---|---|---|---|\n")
	err = settingsRows(&b, structs, "Config", structs["Config"])
	return b.String(), err
}

func settingsRows(b *strings.Builder, structs map[string]*ast.StructType, prefix string, st *ast.StructType) error {
	if st == nil {
		return fmt.Errorf("package mpi has no struct %s", prefix)
	}
	for _, f := range st.Fields.List {
		name := typeName(f.Type)
		if len(f.Names) > 0 {
			name = f.Names[0].Name
		}
		if !ast.IsExported(name) {
			continue
		}
		nested, ok := f.Type.(*ast.StructType)
		if !ok {
			nested, ok = structs[typeName(f.Type)]
		}
		if ok {
			if err := settingsRows(b, structs, prefix+"."+name, nested); err != nil {
				return err
			}
			continue
		}
		meaning := strings.Join(strings.Fields(f.Doc.Text()), " ")
		s := settings.Field{Path: prefix + "." + name, Type: typeText(f.Type)}
		if f.Tag == nil { // set by a program only
			fmt.Fprintf(b, "||`%s`|||%s|\n", s.Path, meaning)
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			return err
		}
		s.Tag = reflect.StructTag(tag)
		if s.Env() == "" || s.Default() == "" {
			return fmt.Errorf("%s needs the tags env and default", s.Path)
		}
		for _, choice := range strings.Split(s.Tag.Get("choices"), ",") {
			if choice != "" && !strings.Contains(meaning, strconv.Quote(choice)) {
				return fmt.Errorf("the comment of %s must say what the choice %q does", s.Path, choice)
			}
		}
		fmt.Fprintf(b, "|`%s`|`%s`|%s|%s|%s|\n", s.Env(), s.Path, s.Default(), s.AllowedValues(), strings.ReplaceAll(meaning, "|", "\\|"))
	}
	return nil
}

// typeText returns a type as reflect writes it.
func typeText(t ast.Expr) string {
	if s, ok := t.(*ast.SelectorExpr); ok {
		return typeText(s.X) + "." + s.Sel.Name
	}
	return typeName(t)
}
