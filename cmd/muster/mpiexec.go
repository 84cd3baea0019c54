package main

// muster mpiexec: muster run with the options of mpiexec of MPICH (Hydra) and of mpirun of Open MPI,
// by a table.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newMpiexecCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mpiexec [options] PROG [ARGS...]",
		Short: "Run a program, with the options of mpiexec of MPICH and mpirun of Open MPI",
		Long: `Translates the options below, with one dash or two, into flags of muster run, which does the
rest. Output is not labelled. An option that is not listed is an error.

` + mpiexecHelp(),
		Example: `  muster mpiexec -n 4 ./prog
  muster mpiexec -hosts a,b -ppn 2 -genv OMP_NUM_THREADS 1 ./prog
  muster mpiexec --host a:2,b:2 -x PATH --bind-to core -n 1 ./server : -n 3 ./client`,
		DisableFlagParsing: true, // they are not of the form that the parser knows
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
				return cmd.Help()
			}
			if slices.Contains([]string{"-V", "-version", "--version"}, args[0]) {
				fmt.Fprintln(cmd.OutOrStdout(), "muster", version())
				return nil
			}
			args, err := translateMpiexec(args)
			if err != nil {
				return fmt.Errorf("mpiexec: %w", err)
			}
			job := newRunCommand()
			job.SetArgs(args)
			job.SilenceUsage, job.SilenceErrors = true, true
			return job.ExecuteContext(context.Background())
		},
	}
}

// mpiexecOption is an option of another launcher: its names, how many words follow, the flags of
// muster run that it is, and what they mean, for the help.
type mpiexecOption struct {
	names string
	words int
	flags func(values []string) ([]string, error)
	help  string
}

// mpiexecOptions returns the table.
func mpiexecOptions() []mpiexecOption {
	return []mpiexecOption{
		{"n np c", 1, flagOf("ranks", asItIs), "number of ranks"},
		{"host hosts H", 1, flagOf("hosts", asItIs), "hosts: a,b:4"},
		{"f hostfile machinefile", 1, flagOf("hostfile", asItIs), "file of hosts"},
		{"ppn perhost npernode N", 1, flagOf("ranks-per-host", asItIs), "ranks of each host"},
		{"oversubscribe", 0, words("--oversubscribe"), "more ranks than the hosts have slots"},
		{"wdir wd", 1, flagOf("wdir", asItIs), "working directory"},
		{"env genv", 2, setVariable, "NAME VALUE: set a variable, of a program or of all"},
		{"x", 1, flagOf("env", asItIs), "NAME or NAME=VALUE: set a variable"},
		{"envlist genvlist", 1, copyVariables, "NAME,NAME: copy variables"},
		{"iface", 1, flagOf("env", func(v string) (string, error) { return "MUSTER_INTERFACE=" + v, nil }), "network interface"},
		{"bind-to", 1, flagOf("bind-to", nameOfDomain), "core, socket, numa, none"},
		{"map-by", 1, mapRanks, "slot, node, core, socket, numa, ppr:N:node"},
		{"bynode", 0, words("--map-by=node"), "as -map-by node"},
		{"byslot", 0, words("--map-by=slot"), "as -map-by slot"},
		{"report-bindings", 0, words("--report-bindings"), "print the cores of each rank"},
		{"l prepend-rank tag-output", 0, words("--label=always"), "label lines of output with the rank"},
		{"output-filename", 1, flagOf("output", asItIs), "write the output of each rank to a file of this directory"},
		{"timeout", 1, flagOf("timeout", func(v string) (string, error) { return v + "s", nil }), "limit of time in seconds"},
		{"q quiet", 0, words("--quiet"), "print only the output of ranks"},
		{"v verbose", 0, words("--verbose"), "log the steps of the job"},
		{"launcher bootstrap", 1, startAgents, "ssh, or rsh"},
		{"launcher-exec bootstrap-exec", 1, flagOf("rsh", asItIs), "command that starts a process on a host"},
		{"mca gmca prtemca pmixmca", 2, setParameter, "btl_tcp_if_include NAME is -iface NAME; other parameters are Open MPI's own and ignored"},
		{"allow-run-as-root use-hwthread-cpus genvall envall", 0, words(), "ignored: it is so"},
	}
}

func asItIs(v string) (string, error) { return v, nil }

func words(flags ...string) func([]string) ([]string, error) {
	return func([]string) ([]string, error) { return flags, nil }
}

// flagOf makes a flag of a converted value.
func flagOf(name string, convert func(string) (string, error)) func([]string) ([]string, error) {
	return func(values []string) ([]string, error) {
		value, err := convert(values[0])
		return []string{"--" + name + "=" + value}, err
	}
}

func setVariable(v []string) ([]string, error) { return []string{"--env=" + v[0] + "=" + v[1]}, nil }

// copyVariables ignores variables that are not set, as Hydra does.
func copyVariables(v []string) (flags []string, err error) {
	for name := range strings.SplitSeq(v[0], ",") {
		if _, set := os.LookupEnv(name); set {
			flags = append(flags, "--env="+name)
		}
	}
	return flags, nil
}

// nameOfDomain returns muster's name for a part of a machine, without what follows the colon:
// "core:overload-allowed", "socket:PE=2".
func nameOfDomain(v string) (string, error) {
	name, modifiers, _ := strings.Cut(v, ":")
	for m := range strings.SplitSeq(strings.ToLower(modifiers), ",") {
		if !slices.Contains([]string{"", "overload-allowed", "oversubscribe", "nooversubscribe", "if-supported", "span"}, m) {
			return "", fmt.Errorf("%s: muster has no modifier %q", v, m)
		}
	}
	switch name {
	case "hwthread", "hwthreads":
		name = "core"
	case "package":
		name = "socket"
	}
	return name, nil
}

func mapRanks(v []string) ([]string, error) {
	if count, each, ok := strings.Cut(strings.TrimPrefix(v[0], "ppr:"), ":"); ok && strings.HasPrefix(v[0], "ppr:") {
		if each, _, _ = strings.Cut(each, ":"); each != "node" {
			return nil, fmt.Errorf("-map-by %s: only ppr:N:node can be mapped", v[0])
		}
		return []string{"--ranks-per-host=" + count}, nil
	}
	by, err := nameOfDomain(v[0])
	flags := []string{"--map-by=" + by}
	if _, modifiers, _ := strings.Cut(strings.ToLower(v[0]), ":"); slices.Contains(strings.Split(modifiers, ","), "oversubscribe") {
		flags = append(flags, "--oversubscribe")
	}
	return flags, err
}

func startAgents(v []string) ([]string, error) {
	switch v[0] {
	case "ssh", "fork":
		return nil, nil
	case "rsh":
		return []string{"--rsh=rsh"}, nil
	}
	return nil, fmt.Errorf("-launcher %s: muster starts agents by ssh, rsh, or the command of -launcher-exec", v[0])
}

func setParameter(v []string) ([]string, error) {
	if v[0] == "btl_tcp_if_include" {
		return []string{"--env=MUSTER_INTERFACE=" + v[1]}, nil
	}
	return nil, nil
}

// mpiexecHelp lists the options.
func mpiexecHelp() string {
	var b strings.Builder
	for _, o := range mpiexecOptions() {
		fmt.Fprintf(&b, "  %-36s %s\n", "-"+strings.Join(strings.Fields(o.names), ", -"), o.help)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// translateMpiexec returns the arguments of muster run.
func translateMpiexec(args []string) (flags []string, err error) {
	programs := splitPrograms(args)
	flags = []string{"--label=never"}
	first := true
	for _, args := range programs {
		own, rest, err := translateProgram(args)
		if err != nil {
			return nil, err
		}
		if len(rest) == 0 {
			return nil, errors.New("no program given; try: muster mpiexec -n 4 ./prog")
		}
		if first && len(programs) > 1 && slices.Contains(args[:len(args)-len(rest)], "-env") {
			return nil, errors.New("-env before the first of several programs would be for all: use -genv, or sh -c 'NAME=VALUE exec PROG'")
		}
		if !first {
			flags = append(flags, ":")
		}
		if !first && hasFlag(flags, "--wdir=") && !hasFlag(own, "--wdir=") {
			own = append(own, "--wdir=.") // that of the first program is not for this one
		}
		first = false
		flags = append(append(flags, own...), rest...)
	}
	return flags, nil
}

func hasFlag(flags []string, prefix string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, prefix) })
}

// splitPrograms splits arguments at each ":".
func splitPrograms(args []string) (programs [][]string) {
	for {
		at := slices.Index(args, ":")
		if at < 0 {
			return append(programs, args)
		}
		programs, args = append(programs, args[:at]), args[at+1:]
	}
}

// translateProgram returns the flags for the options of a program, and the rest: the program and
// its arguments.
func translateProgram(args []string) (flags, rest []string, err error) {
	options := map[string]mpiexecOption{}
	for _, o := range mpiexecOptions() {
		for name := range strings.FieldsSeq(o.names) {
			options[name] = o
		}
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		name, value, joined := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
		o, known := options[name]
		if joined && o.words == 1 {
			args = slices.Insert(slices.Clone(args), 0, value)
		} else if joined {
			known = false
		}
		if !known {
			return nil, nil, fmt.Errorf("unknown option %s; muster mpiexec --help lists those that are known, and muster run has more flags", word)
		}
		if len(args) < o.words {
			return nil, nil, fmt.Errorf("option %s needs %d more words", word, o.words-len(args))
		}
		own, err := o.flags(args[:o.words])
		if err != nil {
			return nil, nil, err
		}
		flags, args = append(flags, own...), args[o.words:]
	}
	return flags, args, nil
}
