package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/tests/judge"
)

// packages returns those with the programs and with the libraries that they need besides MPI's.
func (f *family) packages() []string {
	list := []string{"scalapack-mpi-test", "scalapack-test-common", "libblas3", "liblapack3", "libgfortran5", "libquadmath0"}
	if f.openmpi {
		return append(list, "netpipe-openmpi", "libscalapack-openmpi2.2", "libcoarrays-openmpi-dev", "libcaf-openmpi-3", "hpcc", "phyml", "iqtree")
	}
	return append(list, "netpipe-mpich2", "libscalapack-mpich2.2", "libcoarrays-mpich-dev", "libcaf-mpich-3")
}

// unpackAll returns the folder with the files of the packages, which are downloaded once.
func (f *family) unpackAll(ctx context.Context, cache string) (root string, err error) {
	ready := filepath.Join(cache, "ready") // names the folder
	if name, err := os.ReadFile(ready); err == nil {
		return string(name), nil
	}
	if root, err = judge.Packages(ctx, cache, f.packages()...); err != nil {
		return "", err
	}
	if err := relink(root); err != nil {
		return "", err
	}
	for _, name := range []string{"netpipe", "coarrays", "trees"} {
		if err := os.MkdirAll(workFolder(cache, name), 0o755); err != nil {
			return "", err
		}
	}
	return root, os.WriteFile(ready, []byte(root), 0o644)
}

// relink makes absolute links point into the folder that the packages were unpacked to.
func relink(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() != fs.ModeSymlink {
			return err
		}
		to, err := os.Readlink(path)
		if err != nil || !filepath.IsAbs(to) || strings.HasPrefix(to, root) {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.Symlink(filepath.Join(root, to), path)
	})
}

// libraryPath returns the folders with shared libraries, for LD_LIBRARY_PATH.
func libraryPath(root string) (string, error) {
	var folders []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(d.Name(), ".so") {
			return err
		}
		if dir := filepath.Dir(path); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
		return nil
	})
	return strings.Join(folders, ":"), err
}
