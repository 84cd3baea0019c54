package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/needs"
)

func TestCompilation(t *testing.T) {
	bin := t.TempDir()
	folder := filepath.Join(bin, "cabi")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{mpichLibrary, needs.CoreLibrary} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := " -L" + folder + " -Wl,-rpath," + folder + " -Wl,--disable-new-dtags -lmpich"
	none := func(string) string { return "" }
	for _, test := range []struct {
		args, want string
		env        func(string) string
	}{
		{"-O2 -o p p.c", "cc -I" + folder + "/include -O2 -o p p.c" + link, none},
		{"-c p.c", "cc -I" + folder + "/include -c p.c", none},
		{"--abi p.c", "cc -I" + folder + "/include/mpi5 p.c" + strings.Replace(link, "-lmpich", "-lmpi_abi", 1), none},
		{"--show --cxx p.cc", "c++ -I" + folder + "/include p.cc" + link, none},
		{"-O2 -show", "cc -I" + folder + "/include -O2" + link, none},
		{"--abi --showme:compile", "-I" + folder + "/include/mpi5", none},
		{"-showme:link", link[1:], none},
		{"p.c", "ccache gcc -I" + folder + "/include p.c" + link, func(name string) string {
			return map[string]string{"CC": "ccache gcc"}[name]
		}},
	} {
		c, err := newCompilation(filepath.Join(bin, "muster"), strings.Fields(test.args), test.env)
		if err != nil {
			t.Fatal(test.args, err)
		}
		if c.show == nil {
			c.show = (*compilation).command
		}
		if got := strings.Join(c.show(c), " "); got != test.want {
			t.Errorf("muster cc %s runs or prints\n%s, want\n%s", test.args, got, test.want)
		}
	}
	c, err := newCompilation(filepath.Join(bin, "muster"), []string{"p.c"}, func(string) string { return "muster-mpicc" })
	if env := c.environment([]string{"CC=muster-mpicc", "CXX=c++"}); err != nil || len(env) != 1 || env[0] != "CXX=c++" {
		t.Errorf("a compiler that is muster cc again must not call itself: %v, %v", env, err)
	}
	if _, err := newCompilation(filepath.Join(bin, "muster"), []string{"--cxx"}, none); err == nil {
		t.Error("muster cc --cxx without arguments of the compiler succeeds")
	}
}

func TestOtherNames(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/mpicc": "cc", "muster-mpic++": "cc --cxx", "./muster-mpif90": "cc --fortran", "mpicxx_abi": "cc --cxx --abi",
		"/usr/bin/muster": "", "muster-amd64": "", "xmpicc": "", "mpirun": "mpiexec",
	} {
		if got := strings.Join(commandOfName(path), " "); got != want {
			t.Errorf("a link %s is the command %q, want %q", path, got, want)
		}
	}
}

func TestFortranModules(t *testing.T) {
	if _, err := findFortran(t.TempDir()); err == nil || !strings.Contains(err.Error(), "libmpich-dev") {
		t.Errorf("without the modules: %v; want the package to install", err)
	}
}
