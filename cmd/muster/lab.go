package main

// muster lab: hosts made of network namespaces, which outlive the command. This file
// creates, shows and removes labs; lab_break.go injects faults; lab_run.go runs programs
// on them. internal/lab creates the namespaces.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/lab"
)

// defaultLab is the name of a lab without --name.
const defaultLab = "lab"

func newLabCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Create virtual hosts on this machine to run jobs on, and inject faults",
		Long: `lab creates a virtual cluster on one machine. Each host is a network namespace; a
rail is a switch with a cable to every host. Cables can be slow and can lose packets.
Cables can be cut and hosts killed while a job runs. The machine's own network is not
changed. lab needs root and the commands ip, tc and iptables.

A lab stays until it is removed, also when the terminal is closed. Hosts are called h1,
h2 and so on, rails 0, 1 and so on; "all" selects all of them. Host h3 has the address
10.61.1.3 on rail 1. The hosts share the machine's files and processors.

Several labs with different names (--name) can exist at once. They are isolated from
each other, although they use the same addresses.`,
		Example: `  muster lab up --hosts 4 --rails 2 --rate 1gbit
  muster run --lab -n 16 ./prog     four ranks on each of the four hosts
  muster lab exec h1 ping h2        any command on one host
  muster lab loss h2 5%             drop one in twenty packets to h2
  muster lab cut h2 1               cut the cable of h2 on rail 1
  muster lab mend h2 1              reconnect it
  muster lab rate all 100mbit
  muster lab kill h3                kill every process on h3
  muster lab chaos --seed 7 -- -n 8 ./prog     random faults while a job runs
  muster lab status
  muster lab down`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&name, "name", defaultLab, "name of the lab, if there are several")
	cmd.AddCommand(
		newLabUpCommand(&name),
		newLabDownCommand(&name),
		newLabStatusCommand(&name),
		newLabRateCommand(&name),
		newLabLossCommand(&name),
		newLabCutCommand(&name),
		newLabMendCommand(&name),
		newLabKillCommand(&name),
		newLabExecCommand(&name),
		newLabAwakeCommand(),
		newLabChaosCommand(&name),
	)
	return cmd
}

func newLabUpCommand(name *string) *cobra.Command {
	var cfg lab.Config
	var loss string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Create a lab",
		Long: `up creates hosts, connects them and shows the result.

--rate is the speed of every cable in each direction. Without it a cable is as fast as
the machine can copy. --loss is the share of packets to each host that are dropped.`,
		Example: `  muster lab up --hosts 4
  muster lab up --hosts 4 --rails 2 --rate 1gbit --mtu 9000
  muster lab up --name slow --hosts 8 --rate 100mbit --loss 1%`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cfg.Name = *name; *name == "" {
				return errors.New("lab: --name is empty; give the lab a name")
			}
			if cfg.Loss, err = parseLoss(loss); err != nil {
				return err
			}
			return labUp(cfg, cmd.OutOrStdout())
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&cfg.Hosts, "hosts", 2, "number of hosts, 1 to 250")
	fl.IntVar(&cfg.Rails, "rails", 1, "number of networks, with one interface per host in each, 1 to 16")
	fl.IntVar(&cfg.MTU, "mtu", 1500, "MTU in bytes")
	fl.StringVar(&cfg.Rate, "rate", "", "speed of each cable, such as 1gbit or 100mbit (default: not limited)")
	fl.StringVar(&loss, "loss", "0%", "share of packets that are lost, such as 1%")
	return cmd
}

// labUp creates a lab. If it is interrupted, it removes the incomplete lab.
func labUp(cfg lab.Config, out io.Writer) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stop)
	l, err := lab.Create(cfg)
	if err != nil {
		return err
	}
	select {
	case <-stop:
		return errors.Join(errors.New("lab: interrupted, and removed again"), l.Remove())
	default:
		return showLab(l, out)
	}
}

func newLabDownCommand(name *string) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove a lab and kill every process on its hosts",
		Long: `down kills every process on the hosts of a lab and removes the hosts, also those of
an incomplete lab. It also removes labs that killed tests have left behind.`,
		Example: `  muster lab down
  muster lab down --name slow
  muster lab down --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := lab.Usable(); err != nil {
				return err
			}
			lab.RemoveStale()
			names := []string{*name}
			if all {
				names = lab.Names()
			}
			for _, n := range names {
				if err := lab.Remove(n); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "lab %s is removed\n", n)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all labs that are up")
	return cmd
}

func newLabStatusCommand(name *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the hosts of a lab, their addresses and cables",
		Long: `status shows the state of each cable as the kernel reports it: its speed, its loss
rate, and whether it is "up", "cut" (the host does not notice) or "unplugged" (the
interface has no carrier). Without --name it shows all labs.`,
		Example: `  muster lab status
  muster lab status --json | jq '.[].hosts[].links[].addr'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := lab.Usable(); err != nil {
				return err
			}
			names := lab.Names()
			if cmd.Flags().Changed("name") {
				names = []string{*name}
			}
			return labStatus(names, asJSON, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list of labs")
	return cmd
}

func labStatus(names []string, asJSON bool, out io.Writer) error {
	states := []*lab.Status{}
	for _, n := range names {
		l, err := lab.Find(n)
		if err != nil {
			return err
		}
		if !asJSON {
			if err := showLab(l, out); err != nil {
				return err
			}
			continue
		}
		s, err := l.Status()
		if err != nil {
			return err
		}
		states = append(states, s)
	}
	switch {
	case asJSON:
		text := json.NewEncoder(out)
		text.SetIndent("", "  ")
		return text.Encode(states)
	case len(names) == 0:
		fmt.Fprintln(out, "there is no lab; create one with: muster lab up --hosts 4")
	}
	return nil
}

// showLab prints a lab and example commands for it.
func showLab(l *lab.Lab, out io.Writer) error {
	s, err := l.Status()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "lab %s: %s, %s, MTU %d\n\n", s.Name, count(len(s.Hosts), "host"), count(l.Rails(), "rail"), s.MTU)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "host\tprocesses\trail\taddress\trate\tloss\tcable")
	for h, host := range s.Hosts {
		for r, k := range host.Links {
			name, processes := "", ""
			if r == 0 {
				name, processes = "h"+strconv.Itoa(h+1), strconv.Itoa(len(host.Processes))
			}
			fmt.Fprintln(table, strings.Join([]string{name, processes, strconv.Itoa(r), k.Addr, rateWord(k.Rate), lossWord(k.Loss), cableWord(k)}, "\t"))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	which, suffix := "", ""
	if s.Name != defaultLab {
		which, suffix = " --name "+s.Name, "="+s.Name
	}
	fmt.Fprintln(out)
	fmt.Fprintf(table, "  muster run --lab%s -n %d ./prog\tranks on all hosts\n", suffix, len(s.Hosts))
	fmt.Fprintf(table, "  muster lab exec%s h1 COMMAND\ton one host, or: ip netns exec %s COMMAND\n", which, s.Hosts[0].Name)
	fmt.Fprintf(table, "  muster lab cut%s h1 0\tinject a fault; see muster lab --help for others\n", which)
	fmt.Fprintf(table, "  muster lab down%s\tremove the lab\n", which)
	return table.Flush()
}

func rateWord(bits int64) string {
	if bits == 0 {
		return "-"
	}
	return lab.FormatRate(bits)
}

func lossWord(probability float64) string {
	if probability == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*probability, 'g', 6, 64) + "%"
}

func cableWord(k lab.LinkStatus) string {
	switch {
	case k.Unplugged:
		return "unplugged"
	case k.Cut:
		return "cut"
	}
	return "up"
}
