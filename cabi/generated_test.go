package cabi_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedFiles checks that the files made from functions.txt are those that gen makes.
func TestGeneratedFiles(t *testing.T) {
	tree := t.TempDir()
	made := filepath.Join(tree, "cabi")
	if err := os.CopyFS(made, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(tree, "docs", "reference"), 0o755); err != nil {
		t.Fatal(err)
	}
	gen := filepath.Join(tree, "gen")
	if out, err := exec.Command("go", "build", "-o", gen, "./gen").CombinedOutput(); err != nil {
		t.Fatalf("go build ./gen: %v\n%s", err, out)
	}
	cmd := exec.Command(gen)
	cmd.Dir = made
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gen: %v\n%s", err, out)
	}
	count := 0
	err := fs.WalkDir(os.DirFS(tree), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(d.Name(), "_gen.") && !strings.HasPrefix(path, "docs/") {
			return err
		}
		count++
		want, err := os.ReadFile(filepath.Join(tree, path))
		if err != nil {
			return err
		}
		if got, err := os.ReadFile(filepath.Join("..", path)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what gen makes of functions.txt: go generate ./cabi (%v)", path, err)
		}
		return nil
	})
	if err != nil || count < 2 {
		t.Errorf("gen must write at least two files, found %d: %v", count, err)
	}
}
