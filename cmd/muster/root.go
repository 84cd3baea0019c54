package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/mpi"
)

// newRoot returns the command tree. A new sub-command needs one file with a
// constructor and one line here. If args begin with the name of a command, the tree has
// only that one: every rank of a muster bench builds it, and the whole tree takes longer
// than joining a job.
func newRoot(args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:   "muster",
		Short: "Message passing for Go",
		Long: `muster starts and inspects message passing jobs.

A job is one program that runs as several processes, called ranks. The ranks find
each other through muster and then exchange messages directly.`,
		Example: `  muster run -n 8 ./prog            eight ranks of ./prog on this machine
  muster run -n 2 ./prog arg -x     arguments after the program go to the program
  muster run --hosts a:4,b:4 ./prog four ranks on each of two hosts
  muster help run                   all flags of a command`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("muster {{.Version}}\n")
	commands := []struct {
		name  string
		build func() *cobra.Command
	}{
		{"run", newRunCommand},
		{"mpiexec", newMpiexecCommand},
		{"cc", newCCCommand},
		{"agent", newAgentCommand},
		{"bench", func() *cobra.Command { return newBenchCommand(args) }},
		{"app", newAppCommand},
		{"explain", newExplainCommand},
		{"sched", newSchedCommand},
		{"sim", newSimCommand},
		{"trace", newTraceCommand},
		{"top", newTopCommand},
		{"advise", newAdviseCommand},
		{"tune", newTuneCommand},
		{"doctor", newDoctorCommand},
		{"lab", newLabCommand},
		{"info", newInfoCommand},
		{"version", newVersionCommand},
		{"man", newManCommand},
	}
	for _, c := range commands[:len(commands)-1] { // man describes all
		if len(args) > 0 && args[0] == c.name {
			root.AddCommand(c.build())
			return root
		}
	}
	for _, c := range commands {
		root.AddCommand(c.build())
	}
	completeValues(root)
	return root
}

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of muster and of Go",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]string{"version": mpi.Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "muster", version())
			return err
		},
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func version() string {
	return mpi.Version() + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}
