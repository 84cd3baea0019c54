package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/launch"
)

// newAgentCommand returns the command that run starts on other hosts. It is hidden
// because users never start it by hand.
func newAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "agent",
		Short:  "Run the ranks of a job on this host for a muster run on another host",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := launch.Agent(os.Stdin, os.Stdout); err != nil {
				return fmt.Errorf("agent: %w", err)
			}
			return nil
		},
	}
}
