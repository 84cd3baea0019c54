package main

// muster app NAME: as a rank of a job it runs the application; otherwise it starts itself
// as the ranks that are asked for.

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/apps"
	"github.com/muster-mpi/muster/mpi"
)

func newAppCommand() *cobra.Command {
	var class string
	var ranks, every int
	var asJSON bool
	all := apps.All()
	cmd := &cobra.Command{
		Use:   "app [NAME]",
		Short: "Run an application: NAS benchmarks and small simulations",
		Long: `app runs one of the applications of this repository and prints its size, its speed,
how long it communicated, and whether its output is correct, in the format of the NAS
Parallel Benchmarks. The exit status is 1 if the output is not correct.

Without a name it lists the applications and their classes, which are problem sizes.`,
		Example: `  muster app                                          the applications
  muster app cg                                       one rank, the smallest class
  muster app cg --class A -n 4                        four ranks on this machine
  muster run -n 2 --bind-to core muster app cg -c A   as part of a job
  muster run --hosts a:4,b:4 muster app mg --class B
  muster run -n 4 --spares 1 muster app heat -c W --checkpoint 5`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listApps(cmd.OutOrStdout(), all)
			}
			app, err := findApp(all, args[0], class)
			if err != nil {
				return fmt.Errorf("app %s: %w", args[0], err)
			}
			if ranks < 1 {
				return fmt.Errorf("app %s: -n %d: a job has at least one rank", app.Name, ranks)
			}
			if ranks > 1 && !inJob() {
				return startSelf(cmd, ranks)
			}
			if every != 0 {
				return runSaved(app, class[0], every, asJSON)
			}
			if asJSON {
				return runAppJSON(cmd.Context(), app, class[0], os.Stdout)
			}
			return runApp(app, class[0])
		},
	}
	for _, app := range all {
		cmd.ValidArgs = append(cmd.ValidArgs, app.Name)
	}
	cmd.Flags().StringVarP(&class, "class", "c", "S", "problem size: S, W, A, B and so on, as listed for each application")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead: times, the time in each call, and the counters of the ranks")
	cmd.Flags().IntVar(&every, "checkpoint", 0, "make a checkpoint in memory after so many steps, and go on from it when ranks fail (cg, heat); see muster run --spares")
	cmd.Flags().IntVarP(&ranks, "ranks", "n", 1, "number of ranks to start")
	return cmd
}

func listApps(w io.Writer, all []apps.App) error {
	for _, app := range all {
		if _, err := fmt.Fprintf(w, "%-8s %-6s %s\n", app.Name, app.Classes, app.Summary); err != nil {
			return err
		}
	}
	return nil
}

func findApp(all []apps.App, name, class string) (apps.App, error) {
	i := slices.IndexFunc(all, func(a apps.App) bool { return a.Name == name })
	if i < 0 {
		return apps.App{}, fmt.Errorf("no application has this name; muster app lists them")
	}
	if len(class) != 1 || !strings.Contains(all[i].Classes, class) {
		return apps.App{}, fmt.Errorf("--class %s: it has the classes %s", class, strings.Join(strings.Split(all[i].Classes, ""), ", "))
	}
	return all[i], nil
}

// runApp runs the application as one rank. All ranks get the same result; rank 0 prints it.
func runApp(app apps.App, class byte) error {
	verified := false
	mpi.Main(func(c *mpi.Comm) error {
		result, err := app.Run(c, class)
		if err != nil {
			return fmt.Errorf("app %s: %w", app.Name, err)
		}
		verified = result.Verified()
		if c.Rank() != 0 {
			return nil
		}
		return result.Print(os.Stdout)
	})
	if !verified {
		return exitStatus(1)
	}
	return nil
}

// runSaved runs the application as one rank, with checkpoints. Spares that replace no rank
// have no result.
func runSaved(app apps.App, class byte, every int, asJSON bool) error {
	switch {
	case app.RunSaved == nil:
		return fmt.Errorf("app %s: it has no checkpoints; cg and heat have", app.Name)
	case every < 0:
		return fmt.Errorf("app %s: --checkpoint %d: give the number of steps between checkpoints", app.Name, every)
	case asJSON:
		return fmt.Errorf("app %s: --json and --checkpoint exclude each other", app.Name)
	}
	wrong := false
	mpi.Main(mpi.Recover(func(c *mpi.Comm, a mpi.Attempt) error {
		result, err := app.RunSaved(c, class, apps.Saving{Every: every})
		if err != nil {
			return fmt.Errorf("app %s: %w", app.Name, err)
		}
		wrong = !result.Verified()
		if c.Rank() != 0 {
			return nil
		}
		if a.Number > 1 {
			fmt.Printf("\n Attempt %d, after failures\n", a.Number)
		}
		return result.Print(os.Stdout)
	}))
	if wrong {
		return exitStatus(1)
	}
	return nil
}
