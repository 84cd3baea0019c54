package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// component is a part of the list of what a release is made of (CycloneDX 1.5).
type component struct {
	Type    string          `json:"type"`
	Ref     string          `json:"bom-ref"`
	Name    string          `json:"name"`
	Version string          `json:"version"`
	PURL    string          `json:"purl,omitempty"`
	Hashes  []materialsHash `json:"hashes,omitempty"`
}

type materialsHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

// materials lists modules by what Go has written into the binaries.
type materials struct {
	modules map[string]component
	files   []component
	needs   []dependency
}

// writeMaterials writes the modules, and the version of Go, of each binary that is installed.
func (r *release) writeMaterials() error {
	m := materials{modules: map[string]component{}}
	for _, t := range r.trees {
		for _, f := range t.files {
			if !f.mode.IsRegular() || !slices.Contains([]string{"muster", "muster.exe", "libmuster_core.so"}, path.Base(f.name)) || path.Ext(f.name) == "" && path.Dir(f.name) != "usr/bin" {
				continue
			}
			if err := m.add(r, t.os+"-"+t.arch+"/"+path.Base(f.name), f.data); err != nil {
				return fmt.Errorf("%s of %s-%s: %w", f.name, t.os, t.arch, err)
			}
		}
	}
	whole := component{Type: "application", Ref: "muster", Name: "muster", Version: r.version, PURL: "pkg:golang/github.com/muster-mpi/muster@v" + r.version}
	list := m.files
	for _, c := range m.modules {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	out, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"component": whole},
		"components": list, "dependencies": m.needs,
	}, "", "  ")
	if err != nil {
		return err
	}
	return r.write("muster-"+r.version+".cdx.json", append(out, '\n'))
}

// add reads the modules of one binary.
func (m *materials) add(r *release, name string, binary []byte) error {
	info, err := buildinfo.Read(io.NewSectionReader(bytes.NewReader(binary), 0, int64(len(binary))))
	if err != nil {
		return err
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	needs := []string{m.addModule("stdlib", "v"+goVersion)}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		needs = append(needs, m.addModule(d.Path, d.Version))
	}
	sum := sha256.Sum256(binary)
	m.files = append(m.files, component{Type: "file", Ref: "file:" + name, Name: name, Version: r.version,
		Hashes: []materialsHash{{Algorithm: "SHA-256", Content: hex.EncodeToString(sum[:])}}})
	m.needs = append(m.needs, dependency{Ref: "file:" + name, On: needs})
	return nil
}

func (m *materials) addModule(module, version string) string {
	ref := "pkg:golang/" + module + "@" + version
	m.modules[ref] = component{Type: "library", Ref: ref, Name: module, Version: version, PURL: ref}
	return ref
}
