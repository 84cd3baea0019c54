package main

// Symbol tables of programs and libraries, and what becomes of an import.

import (
	"debug/elf"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// names of MPI in C and Fortran, and of what the libraries for Fortran and C++ share with it.
var names = regexp.MustCompile(`^(P?MPIX?_\w+|P?OMPI_\w+|p?mpix?_\w+_|ompi_\w+|opal_\w+)$`)

// definitions returns the symbols that a library defines.
func definitions(path string) (map[string]bool, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	defined := map[string]bool{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			defined[s.Name] = true
		}
	}
	return defined, nil
}

// importsOf returns the symbols of MPI that a file imports.
func importsOf(path string) (imports []string, err error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	symbols, err := file.ImportedSymbols()
	if err != nil {
		return nil, nil // it is not linked dynamically
	}
	for _, s := range symbols {
		if names.MatchString(s.Name) {
			imports = append(imports, s.Name)
		}
	}
	return imports, nil
}

// importsBelow returns those of all files of a folder that no other of these files defines.
func importsBelow(root string) ([]string, error) {
	all, defined := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		imports, err := importsOf(path)
		if err != nil {
			return nil // another kind of file
		}
		for _, name := range imports {
			all[name] = true
		}
		own, err := definitions(path)
		if err == nil {
			maps.Copy(defined, own)
		}
		return nil
	})
	maps.DeleteFunc(all, func(name string, _ bool) bool { return defined[name] })
	return slices.Sorted(maps.Keys(all)), err
}

// state says what our library and those on it have.
type state struct {
	defined map[string]bool
	absent  map[string]string // functions that are not implemented, by their names in small letters
}

func newState(defined, implemented map[string]bool) *state {
	s := &state{defined: maps.Clone(defined), absent: map[string]string{}}
	for name, has := range implemented {
		if !has {
			s.absent[strings.ToLower(name)] = name
		}
	}
	return s
}

func (s *state) add(defined map[string]bool) { maps.Copy(s.defined, defined) }

// kind is what an import needs that we do not have.
type kind int

const (
	resolved kind = iota
	file          // MPI_File_*
	spawn         // processes that start or connect later
	lacking       // another function that is not implemented
	missing       // not defined
)

var (
	ofFiles = regexp.MustCompile(`^mpi_(file_|register_datarep)`)
	ofSpawn = regexp.MustCompile(`^mpi_(comm_(spawn|connect|accept|join)|open_port|close_port|(un)?publish_name|lookup_name)|^ompi_fortran_(multiple_)?argv`)
	mangled = regexp.MustCompile(`(_f08|_f)?_$`) // names of Fortran
)

func (s *state) kindOf(name string) kind {
	function := mangled.ReplaceAllString(strings.ToLower(name), "")
	if strings.HasPrefix(function, "pmpi") {
		function = function[1:]
	}
	_, absent := s.absent[function]
	switch {
	case !s.defined[name] && !ofSpawn.MatchString(function):
		return missing
	case s.defined[name] && !absent:
		return resolved
	case ofFiles.MatchString(function):
		return file
	case ofSpawn.MatchString(function):
		return spawn
	}
	return lacking
}
