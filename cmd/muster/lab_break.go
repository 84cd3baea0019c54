package main

// Fault injection while a job runs on a lab. Each command looks up the lab by its name,
// resolves the host and rail arguments, and changes one thing.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/lab"
)

func newLabRateCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "rate HOST RATE [RAIL]",
		Short: "Set the speed of a host's cables",
		Long: `rate sets the speed of a host's cable on a rail, in each direction; "none" removes the
limit. HOST may be "all"; without RAIL the command applies to all rails.`,
		Example: `  muster lab rate all 1gbit
  muster lab rate h2 100mbit 1
  muster lab rate h2 none`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			rate := args[1]
			if rate == "none" {
				rate = ""
			} else if _, err := lab.ParseRate(rate); err != nil {
				return err
			}
			return onCables(cmd, *name, args[0], args[2:], "rate "+args[1], func(l *lab.Lab, host string, rail int) error {
				return l.Rate(host, rail, rate)
			})
		},
	}
}

func newLabLossCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "loss HOST SHARE [RAIL]",
		Short: "Drop a share of the packets to a host",
		Long: `loss drops packets to a host at random; 0% stops it. HOST may be "all"; without RAIL
the command applies to all rails.`,
		Example: `  muster lab loss h2 5%
  muster lab loss all 0.1% 1
  muster lab loss h2 0%`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			loss, err := parseLoss(args[1])
			if err != nil {
				return err
			}
			return onCables(cmd, *name, args[0], args[2:], "loss "+args[1], func(l *lab.Lab, host string, rail int) error {
				return l.Loss(host, rail, loss)
			})
		},
	}
}

func newLabCutCommand(name *string) *cobra.Command {
	var unplug bool
	cmd := &cobra.Command{
		Use:   "cut HOST [RAIL]",
		Short: "Cut the cables of a host",
		Long: `cut stops all traffic of a host on a rail, without RAIL on all rails. The host is not
notified: its packets are lost. With --unplug its interface also loses the carrier.`,
		Example: `  muster lab cut h2 1
  muster lab cut h2 && muster lab kill h2     as if h2 had lost its power`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if unplug {
				return onCables(cmd, *name, args[0], args[1:], "unplugged", func(l *lab.Lab, host string, rail int) error {
					return l.Link(host, rail, false)
				})
			}
			return onCables(cmd, *name, args[0], args[1:], "cut", (*lab.Lab).Cut)
		},
	}
	cmd.Flags().BoolVar(&unplug, "unplug", false, "also take the carrier away, so that the host notices")
	return cmd
}

func newLabMendCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:     "mend HOST [RAIL]",
		Short:   "Reconnect the cables of a host",
		Long:    `mend reverts cut and cut --unplug. HOST may be "all"; without RAIL the command applies to all rails.`,
		Example: "  muster lab mend h2 1\n  muster lab mend all",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onCables(cmd, *name, args[0], args[1:], "up", (*lab.Lab).Mend)
		},
	}
}

func newLabKillCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "kill HOST",
		Short: "Kill every process on a host",
		Long: `kill ends every process on a host with SIGKILL, including ranks and agents of muster
run. The kernel closes their connections, so peers notice at once. To prevent that, cut
the host first.`,
		Example: `  muster lab kill h3
  muster lab cut h3 && muster lab kill h3     as if h3 had lost its power`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, hosts, err := findLabHosts(*name, args[0])
			if err != nil {
				return err
			}
			for _, h := range hosts {
				if err := l.Kill(h); err != nil {
					return err
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: no process is left\n", args[0])
			return nil
		},
	}
}

// onCables applies do to the cables selected by host and rail and prints the result.
func onCables(cmd *cobra.Command, name, host string, rail []string, what string, do func(l *lab.Lab, host string, rail int) error) error {
	l, hosts, err := findLabHosts(name, host)
	if err != nil {
		return err
	}
	number, which := lab.EveryRail, "all rails"
	if len(rail) > 0 && rail[0] != "all" {
		if number, err = strconv.Atoi(rail[0]); err != nil || number < 0 || number >= l.Rails() {
			return fmt.Errorf("lab: no rail %q: lab %q has %s, numbered from 0", rail[0], name, count(l.Rails(), "rail"))
		}
		which = "rail " + rail[0]
	}
	for _, h := range hosts {
		if err := do(l, h, number); err != nil {
			return err
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s, %s: %s\n", host, which, what)
	return nil
}

// findLabHosts returns a lab and the hosts that word selects.
func findLabHosts(name, word string) (*lab.Lab, []string, error) {
	if err := lab.Usable(); err != nil {
		return nil, nil, err
	}
	l, err := lab.Find(name)
	if err != nil {
		return nil, nil, err
	}
	if word == "all" {
		return l, l.Hosts(), nil
	}
	host, err := l.Host(word)
	return l, []string{host}, err
}

// parseLoss parses a share such as 5% or 0.05.
func parseLoss(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	p, err := strconv.ParseFloat(number, 64)
	if percent {
		p /= 100
	}
	if err != nil || !(p >= 0 && p <= 1) {
		return 0, fmt.Errorf("lab: loss %q: use a share such as 5%% or 0.05", s)
	}
	return p, nil
}
