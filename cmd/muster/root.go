package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// newRoot returns the command tree. A new sub-command needs one file with a
// constructor and one line here.
func newRoot() *cobra.Command {
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
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newRunCommand(),
		newAgentCommand(),
		newBenchCommand(),
		newExplainCommand(),
		newSchedCommand(),
		newTuneCommand(),
		newDoctorCommand(),
		newLabCommand(),
		newVersionCommand(),
	)
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of muster and of Go",
		Args:  cobra.NoArgs,
		Run:   func(cmd *cobra.Command, args []string) { fmt.Fprintln(cmd.OutOrStdout(), "muster", version()) },
	}
}

func version() string {
	return moduleVersion() + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

// moduleVersion returns the module version recorded in this binary.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown version)"
}
