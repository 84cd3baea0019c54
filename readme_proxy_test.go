package muster_test

import (
	"archive/zip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// makeProxy writes the files that a module proxy serves for this module ("go help
// goproxy"), with the tree as its only version.
func makeProxy(dir, tree string) error {
	number, err := os.ReadFile(filepath.Join(tree, "VERSION"))
	if err != nil {
		return err
	}
	version := "v" + strings.TrimSpace(string(number))
	mod, err := os.ReadFile(filepath.Join(tree, "go.mod"))
	if err != nil {
		return err
	}
	at := filepath.Join(dir, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, version),
		version + ".mod":  string(mod),
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	defer file.Close()
	w := zip.NewWriter(file)
	if err := zipTree(w, tree, module+"@"+version+"/"); err != nil {
		return err
	}
	return w.Close()
}

// zipTree adds what is under version control: all but bin and folders that begin with a dot.
func zipTree(w *zip.Writer, tree, prefix string) error {
	return filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel == "bin" || rel != "." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := w.Create(prefix + filepath.ToSlash(rel))
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return err
	})
}
