// Command muster starts message passing jobs. Its sub-commands are listed in
// root.go, one file each.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

func main() { os.Exit(run(append(commandOfName(os.Args[0]), os.Args[1:]...))) }

// run executes the command line and returns the exit status.
func run(args []string) int {
	root := newRoot(args...)
	if len(args) > 0 && args[0] == "run" {
		if cmd, _, err := root.Find(args[:1]); err == nil {
			args = append([]string{"run"}, acceptForms(cmd.Flags(), args[1:])...)
		}
	}
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	var status exitStatus
	switch {
	case errors.As(err, &status):
		return int(status)
	case err != nil:
		fmt.Fprintln(os.Stderr, paint(os.Stderr, colorRed, "muster:"), err)
		return 2
	}
	return 0
}

// exitStatus is the error of a command that has already printed why it failed.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
