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
  --show     print the command and do not run it; also -show, -showme, and
             -showme:compile and -showme:link for the flags alone

muster-mpicc, muster-mpicxx and muster-mpifort are the same for build systems that want a
compiler. A link mpicc, mpicxx or mpifort to muster is, too.`,
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
			if c.show != nil {
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(c.show(c), " "))
				return nil
			}
			return c.run()
		},
	}
}

// compilation is a call of a compiler.
type compilation struct {
	compiler, include, args, link []string

	variable string                      // of the environment, which names the compiler
	show     func(*compilation) []string // what to print, instead of running the compiler
}

// command returns the whole command.
func (c *compilation) command() []string {
	return slices.Concat(c.compiler, c.include, c.args, c.link)
}

// showFlag returns what an argument asks to print: with one dash as MPICH and Open MPI have it.
func showFlag(arg string) func(*compilation) []string {
	switch strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-") {
	case arg: // no flag
		return nil
	case "show", "showme":
		return (*compilation).command
	case "showme:compile":
		return func(c *compilation) []string { return c.include }
	case "showme:link":
		return func(c *compilation) []string { return c.link }
	}
	return nil
}

func newCompilation(executable string, args []string, getenv func(string) string) (*compilation, error) {
	folder, err := findFronts(executable)
	if err != nil {
		return nil, err
	}
	c := &compilation{variable: "CC"}
	compiler, libraries, include := "cc", []string{"-lmpich"}, filepath.Join(folder, "include")
	for _, arg := range args {
		if show := showFlag(arg); show != nil {
			c.show = show
			continue
		}
		switch {
		case len(c.args) > 0: // of the compiler, as all that follow
			c.args = append(c.args, arg)
		case arg == "--cxx":
			c.variable, compiler = "CXX", "c++"
		case arg == "--fortran":
			c.variable, compiler = "FC", "gfortran"
			fortran, err := findFortran("/usr")
			if err != nil {
				return nil, err
			}
			include, libraries = fortran.modules, []string{fortran.library, "-lmpich"}
		case arg == "--abi":
			include, libraries = filepath.Join(include, "mpi5"), []string{"-lmpi_abi"}
		default:
			c.args = append(c.args, arg)
		}
	}
	if len(c.args) == 0 && c.show == nil {
		return nil, errors.New("there is nothing to compile: pass the arguments of the compiler")
	}
	if chosen := getenv(c.variable); chosen != "" {
		compiler = chosen
	}
	c.compiler, c.include = strings.Fields(compiler), []string{"-I" + include}
	if !slices.ContainsFunc(c.args, compilesOnly) {
		// DT_RPATH, unlike DT_RUNPATH, also applies to the libraries of libmpichfort.
		c.link = append([]string{"-L" + folder, "-Wl,-rpath," + folder, "-Wl,--disable-new-dtags"}, libraries...)
	}
	return c, nil
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
	command := c.command()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = c.environment(os.Environ())
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		os.Exit(exit.ExitCode())
	}
	return err
}
