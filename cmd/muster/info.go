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

// binaryInfo is what muster info shows.
type binaryInfo struct {
	Version  string        `json:"version"`
	Tags     string        `json:"build_tags"`
	PMIx     string        `json:"pmix"`
	Devices  []deviceInfo  `json:"devices"`
	Settings []settingInfo `json:"settings"`
}

type deviceInfo struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
	Why       string `json:"why,omitempty"` // it is not
	Purpose   string `json:"purpose"`
}

type settingInfo struct {
	Name    string `json:"name"`
	Value   string `json:"value"` // "-": it depends on the job
	Origin  string `json:"origin"`
	Default string `json:"default"`
}

func newInfoCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Show the version, the devices and the settings",
		Long: `Shows the version and build of muster, the devices and launchers that it was
built with, and every setting with its value, its default and where the value
comes from: the environment or the default. Run it on a host, or with "muster run -n 1
muster info", to see what ranks there get.`,
		Example: `  muster info
  MUSTER_CHANNEL=rd muster info
  muster info --json | jq .settings`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := gatherInfo(os.Environ())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), x)
			}
			return x.print(cmd.OutOrStdout())
		},
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func gatherInfo(environ []string) (*binaryInfo, error) {
	cfg, err := mpi.ConfigFromEnv(environ)
	if err != nil {
		return nil, err
	}
	x := &binaryInfo{Version: version(), Tags: buildTags(), PMIx: builtWith(pmix.Built, "pmix")}
	for _, d := range devices.All() {
		one := deviceInfo{Name: d.Name, Available: true, Purpose: d.Doc}
		if err := d.Available(); err != nil {
			one.Available, one.Why = false, err.Error()
		}
		x.Devices = append(x.Devices, one)
	}
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
		x.Settings = append(x.Settings, settingInfo{f.Env(), value, origin, f.Default()})
	}
	return x, nil
}

func (x *binaryInfo) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "version\t%s\n", x.Version)
	fmt.Fprintf(t, "build tags\t%s\n", x.Tags)
	fmt.Fprintf(t, "PMIx\t%s\n", x.PMIx)
	fmt.Fprintf(t, "\ndevice\tavailable\tpurpose\n")
	for _, d := range x.Devices {
		available := "yes"
		if !d.Available {
			available = "no; " + d.Why
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", d.Name, available, d.Purpose)
	}
	fmt.Fprintf(t, "\nsetting\tvalue\torigin\tdefault\n")
	for _, s := range x.Settings {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Name, s.Value, s.Origin, s.Default)
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
