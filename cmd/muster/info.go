package main

// muster info: what this binary is and how it is configured.

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/devices"
	"github.com/muster-mpi/muster/internal/pmix"
	"github.com/muster-mpi/muster/internal/settings"
	"github.com/muster-mpi/muster/mpi"
)

func newInfoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "info",
		Short: "Show the version, the devices and the settings",
		Long: `Shows the version and build of muster, the devices and launchers that it was
built with, and every setting with its value, its default and where the value
comes from: the environment or the default. Run it on a host, or with "muster run -n 1
muster info", to see what ranks there get.`,
		Example: `  muster info
  MUSTER_CHANNEL=rd muster info`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return showInfo(cmd.OutOrStdout(), os.Environ()) },
	}
}

func showInfo(w io.Writer, environ []string) error {
	cfg, err := mpi.ConfigFromEnv(environ)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "version\t%s\n", version())
	fmt.Fprintf(t, "build tags\t%s\n", buildTags())
	fmt.Fprintf(t, "PMIx\t%s\n", builtWith(pmix.Built, "pmix"))
	fmt.Fprintf(t, "\ndevice\tavailable\tpurpose\n")
	for _, d := range devices.All() {
		available := "yes"
		if err := d.Available(); err != nil {
			available = "no; " + err.Error()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", d.Name, available, d.Doc)
	}
	fmt.Fprintf(t, "\nsetting\tvalue\torigin\tdefault\n")
	for _, f := range settings.Fields(cfg) {
		value, origin := f.Default(), "default"
		if strings.Contains(value, " ") {
			value = "-" // it depends on the job
		}
		for _, kv := range environ {
			if set, ok := strings.CutPrefix(kv, f.Env()+"="); ok {
				value, origin = set, "environment"
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.Env(), value, origin, f.Default())
	}
	return t.Flush()
}

func builtWith(yes bool, tag string) string {
	if yes {
		return "yes"
	}
	return "no; build with -tags " + tag
}

// buildTags returns the tags recorded in this binary.
func buildTags() string {
	info, ok := debug.ReadBuildInfo()
	for i := 0; ok && i < len(info.Settings); i++ {
		if s := info.Settings[i]; s.Key == "-tags" {
			return s.Value
		}
	}
	return "none"
}
