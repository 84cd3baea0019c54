package main

// The programs of muster run: one, or several separated by ":".

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/internal/launch"
)

// segment is a program of the command line, with its own flags.
type segment struct {
	ranks int // 0: not given
	wdir  string
	env   []string
	args  []string // with the program first
}

// setPrograms sets the programs of a job. slots is as for hostFlags.set.
func (f *runFlags) setPrograms(args []string, slots int, cfg *launch.Config) error {
	segments, err := parseSegments(args)
	if err != nil {
		return err
	}
	segments[0].ranks = f.ranks
	if cfg.Dir, err = workingDir(f.wdir, cfg); err != nil {
		return err
	}
	if len(segments) == 1 {
		cfg.Ranks, cfg.Args = f.ranks, args[1:]
		if cfg.Ranks == 0 && len(cfg.Hosts) == 0 {
			if cfg.Ranks = slots; slots == 0 {
				cfg.Ranks = launch.Cores()
			}
		}
		cfg.Prog, err = resolve(args[0], f.wdir != "", cfg)
		return err
	}
	for i, s := range segments {
		if s.ranks == 0 {
			return fmt.Errorf("program %d of %d (%s) has no -n: with several programs each needs it", i+1, len(segments), s.args[0])
		}
		p := launch.Program{Ranks: s.ranks, Args: s.args[1:]}
		if p.Dir, err = workingDir(s.wdir, cfg); err != nil {
			return err
		}
		if p.Env, err = variables(s.env); err != nil {
			return err
		}
		if p.Prog, err = resolve(s.args[0], f.wdir != "" || s.wdir != "", cfg); err != nil {
			return err
		}
		cfg.Programs = append(cfg.Programs, p)
	}
	return nil
}

// parseSegments splits the arguments of run, from the first program on, at each ":".
func parseSegments(args []string) (segments []segment, err error) {
	start := 0
	for i := range len(args) + 1 {
		if i < len(args) && args[i] != ":" {
			continue
		}
		s := segment{args: args[start:i]}
		if start > 0 {
			if s, err = parseSegment(args[start:i]); err != nil {
				return nil, err
			}
		}
		if len(s.args) == 0 {
			return nil, fmt.Errorf("there is no program %d: each \":\" is followed by a program, as in -n 1 ./a : -n 3 ./b", len(segments)+1)
		}
		segments = append(segments, s)
		start = i + 1
	}
	return segments, nil
}

// parseSegment parses the flags of a program after a ":".
func parseSegment(args []string) (s segment, err error) {
	fl := pflag.NewFlagSet("program", pflag.ContinueOnError)
	fl.Usage = func() {}
	fl.SetInterspersed(false)
	fl.SetNormalizeFunc(otherNames)
	fl.IntVarP(&s.ranks, "ranks", "n", 0, "")
	fl.StringVar(&s.wdir, "wdir", "", "")
	fl.StringArrayVar(&s.env, "env", nil, "")
	if err := fl.Parse(acceptForms(fl, args)); err != nil {
		return s, fmt.Errorf("after \":\": %w; a program after it has the flags -n, --wdir and --env, all others come before the first program", err)
	}
	if fl.Changed("ranks") && s.ranks < 1 {
		return s, fmt.Errorf("-n %d: a program has at least one rank", s.ranks)
	}
	s.args = fl.Args()
	return s, nil
}

// acceptForms accepts forms of flags that the parser does not: -np, the flag of other
// launchers, which it would read as -n with the value "p"; and "--flag VALUE" for a flag whose
// value may be omitted, where it would take the value for the program. Arguments of the
// program stay as they are.
func acceptForms(fl *pflag.FlagSet, args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		word := args[i]
		if len(word) < 2 || word[0] != '-' || word == "--" {
			return append(out, args[i:]...)
		}
		if word == "-np" {
			word = "-n"
		}
		if i+1 < len(args) && mayHaveValue(fl, word) && isOptionalValue(word, args[i+1]) {
			i++
			word += "=" + args[i]
		}
		out = append(out, word)
		if i+1 < len(args) && hasValue(fl, word) {
			i++
			out = append(out, args[i])
		}
	}
	return out
}

// mayHaveValue reports whether a word is a flag whose value may be omitted.
func mayHaveValue(fl *pflag.FlagSet, word string) bool {
	name, long := strings.CutPrefix(word, "--")
	flag := fl.Lookup(name)
	return long && flag != nil && flag.NoOptDefVal != "" && flag.Value.Type() != "bool"
}

// isOptionalValue reports whether a word behind a flag is its value, and not the program.
func isOptionalValue(flag, word string) bool {
	switch flag {
	case "--profile":
		return isProfileValue(word)
	case "--lab":
		return slices.Contains(lab.Names(), word)
	}
	return false
}

// hasValue reports whether the value of a flag is the next argument.
func hasValue(fl *pflag.FlagSet, word string) bool {
	var flag *pflag.Flag
	if name, long := strings.CutPrefix(word, "--"); long {
		flag = fl.Lookup(name) // nil if the value follows "="
	} else if len(word) == 2 {
		flag = fl.ShorthandLookup(word[1:])
	}
	return flag != nil && flag.NoOptDefVal == ""
}

// workingDir returns the directory of --wdir. On other hosts the agents check it.
func workingDir(dir string, cfg *launch.Config) (string, error) {
	if dir == "" {
		return "", nil
	}
	dir, err := filepath.Abs(dir)
	if err == nil && len(cfg.Hosts) == 0 {
		var info os.FileInfo
		if info, err = os.Stat(dir); err == nil && !info.IsDir() {
			err = errors.New(dir + " is not a directory")
		}
	}
	if err != nil {
		return "", fmt.Errorf("--wdir: %w", err)
	}
	return dir, nil
}

// resolve returns the path of a program; on several hosts, each host resolves it, unless
// it gets a copy. A
// relative path is relative to the current directory, not to that of --wdir.
func resolve(name string, elsewhere bool, cfg *launch.Config) (path string, err error) {
	path = name
	if len(cfg.Hosts) == 0 || cfg.Remote.Copy {
		if path, err = findProgram(name); err != nil {
			return "", err
		}
	}
	if elsewhere && strings.Contains(path, "/") {
		return filepath.Abs(path)
	}
	return path, nil
}
