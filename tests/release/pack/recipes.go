package main

import (
	"bytes"
	_ "embed"
	"os"
	"path/filepath"
	"text/template"
)

const (
	homepage = "https://github.com/muster-mpi/muster"
	license  = "Apache-2.0"
	summary  = "Message passing for Go, and for programs built for MPICH and Open MPI"
)

//go:embed muster.rb.tmpl
var formula string

//go:embed package.py.tmpl
var recipe string

// writeRecipes writes a Homebrew formula and a Spack recipe, which install the tarballs.
func (r *release) writeRecipes() error {
	sums := map[string]string{} // by OS-ARCH
	for _, t := range r.trees {
		system := t.os + "-" + t.arch
		tarball, err := os.ReadFile(filepath.Join(r.dir, "muster-"+r.version+"-"+system+".tar.gz"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		sums[system] = digest(tarball)[len("sha256:"):]
	}
	values := map[string]any{"Version": r.version, "Homepage": homepage, "License": license, "Summary": summary, "Sums": sums,
		"Systems": map[string]string{"darwin": "on_macos", "linux": "on_linux"}, "Processors": map[string]string{"amd64": "on_intel", "arm64": "on_arm"}}
	for name, source := range map[string]string{"muster.rb": formula, "package.py": recipe} {
		t, err := template.New(name).Parse(source)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, values); err != nil {
			return err
		}
		if err := r.write(name, b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
