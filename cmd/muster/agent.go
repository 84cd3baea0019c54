package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/launch"
)

// newAgentCommand is what run starts on other hosts. It is hidden: people have no
// use for it.
func newAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "agent",
		Short:  "Keep the ranks of a job on this host, for muster run on another",
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
