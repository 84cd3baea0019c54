package main

// muster cc: compiles C, C++ and Fortran programs for the C interface (package cabi), on
// machines without another MPI too.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newCCCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cc [--cxx | --fortran] [--abi] [--show] ARGUMENTS...",
		Short: "Compile a C, C++ or Fortran program that uses MPI",
		Long: `Runs the C compiler ($CC, default cc) with the flags for mpi.h and Muster's
libmpich.so.12. All other arguments are those of the compiler.

  --cxx      the C++ compiler: $CXX, default c++
  --fortran  the Fortran compiler: $FC, default gfortran; it uses the modules of
             MPICH and libmpichfort (Debian packages libmpich-dev and libmpich12)
  --abi      the standard ABI of MPI-5.0, in C and C++: the program runs on all MPI
             libraries that have it, here on Muster's libmpi_abi.so.1
  --show     print the command and do not run it

"make cabi" also makes the scripts muster-mpicc, muster-mpicxx and muster-mpifort, for
build systems that want a compiler.`,
		Example: `  muster cc -O2 -o prog prog.c
  muster run -n 4 ./prog
  ./configure CC=muster-mpicc`,
		DisableFlagParsing: true, // they are the compiler's
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
				return cmd.Help()
			}
			executable, err := os.Executable()
			if err != nil {
				return err
			}
			c, err := newCompilation(executable, args, os.Getenv)
			if err != nil {
				return fmt.Errorf("cc: %w", err)
			}
			if c.show {
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(c.command, " "))
				return nil
			}
			return c.run()
		},
	}
}

// compilation is a call of a compiler.
type compilation struct {
	command  []string
	variable string // of the environment, which names the compiler
	show     bool
}

func newCompilation(executable string, args []string, getenv func(string) string) (*compilation, error) {
	folder, err := findFronts(executable)
	if err != nil {
		return nil, err
	}
	variable, compiler, libraries := "CC", "cc", []string{"-lmpich"}
	include := filepath.Join(folder, "include")
	c := new(compilation)
	for ; len(args) > 0; args = args[1:] {
		switch args[0] {
		case "--cxx":
			variable, compiler = "CXX", "c++"
		case "--fortran":
			variable, compiler = "FC", "gfortran"
			fortran, err := findFortran("/usr")
			if err != nil {
				return nil, err
			}
			include, libraries = fortran.modules, []string{fortran.library, "-lmpich"}
		case "--abi":
			include, libraries = filepath.Join(include, "mpi5"), []string{"-lmpi_abi"}
		case "--show", "-show":
			c.show = true
		default:
			if chosen := getenv(variable); chosen != "" {
				compiler = chosen
			}
			c.variable = variable
			c.command = append(strings.Fields(compiler), "-I"+include)
			c.command = append(c.command, args...)
			if !slices.ContainsFunc(args, compilesOnly) {
				// DT_RPATH, unlike DT_RUNPATH, also applies to the libraries of libmpichfort.
				c.command = append(c.command, "-L"+folder, "-Wl,-rpath,"+folder, "-Wl,--disable-new-dtags")
				c.command = append(c.command, libraries...)
			}
			return c, nil
		}
	}
	return nil, errors.New("there is nothing to compile: pass the arguments of the compiler")
}

// compilesOnly reports whether an argument means that nothing is linked.
func compilesOnly(arg string) bool {
	return slices.Contains([]string{"-c", "-E", "-S", "-M", "-MM", "--version", "-fsyntax-only"}, arg)
}

// fortran is where MPICH has the parts for Fortran.
type fortran struct{ modules, library string }

func findFortran(prefix string) (*fortran, error) {
	modules, _ := filepath.Glob(filepath.Join(prefix, "include", "*", "mpich", "mpi.mod")) // the pattern is valid
	library, _ := filepath.Glob(filepath.Join(prefix, "lib", "*", "libmpichfort.so.12"))
	if len(modules) == 0 || len(library) == 0 {
		return nil, errors.New("the modules of MPICH for Fortran are not installed; install the Debian package libmpich-dev")
	}
	return &fortran{filepath.Dir(modules[0]), library[0]}, nil
}

// environment returns the variables of the compiler: configure exports CC, so that CC=muster-mpicc would
// call itself forever.
func (c *compilation) environment(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, c.variable+"=") })
}

// run runs the compiler. Its exit status becomes that of muster.
func (c *compilation) run() error {
	cmd := exec.Command(c.command[0], c.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = c.environment(os.Environ())
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		os.Exit(exit.ExitCode())
	}
	return err
}
