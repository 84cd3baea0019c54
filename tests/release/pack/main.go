package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// release is what the packages have in common.
type release struct {
	dir     string // of the archives and of tree-OS-ARCH
	version string
	trees   []tree
}

// tree is what is installed on one system.
type tree struct {
	os, arch string
	files    []file // by name: a folder comes before its files
}

// file is a file, folder or symbolic link.
type file struct {
	name string // with slashes, such as usr/bin/muster
	mode fs.FileMode
	data []byte // of a link: its target
}

func main() {
	r := release{}
	flag.StringVar(&r.dir, "dir", "", "folder with the archives and with a folder tree-OS-ARCH for each system")
	flag.StringVar(&r.version, "version", "", "of the release")
	flag.Parse()
	if err := r.pack(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func (r *release) pack() error {
	folders, err := filepath.Glob(filepath.Join(r.dir, "tree-*-*"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		system := strings.Split(filepath.Base(folder), "-")
		files, err := readTree(folder)
		if err != nil {
			return err
		}
		r.trees = append(r.trees, tree{os: system[1], arch: system[2], files: files})
	}
	for _, t := range r.trees {
		switch t.os {
		case "windows":
			err = r.writeZip(t)
		case "linux":
			err = r.writeRPM(t)
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(r.writeImage(), r.writeMaterials(), r.writeRecipes())
}

// readTree reads the files below a folder, whose own name is left out.
func readTree(root string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		f := file{name: filepath.ToSlash(name), mode: info.Mode()}
		switch {
		case f.mode.IsRegular():
			f.data, err = os.ReadFile(path)
		case f.mode&fs.ModeSymlink != 0:
			var target string
			target, err = os.Readlink(path)
			f.data = []byte(target)
		}
		files = append(files, f)
		return err
	})
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return files, err
}

func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), data, 0o644)
}
