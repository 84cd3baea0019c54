package main

// muster lab: hosts made of network namespaces, which outlive the command. This
// file makes labs, shows them and takes them down; lab_break.go breaks them;
// lab_run.go runs programs on them. The namespaces are made in internal/lab.

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

// defaultLab is the name of a lab that was given none.
const defaultLab = "lab"

func newLabCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Make hosts on this machine to run jobs on, and break them",
		Long: `lab makes a cluster on one machine. Each host is a network namespace; a rail is a
switch that every host has a cable to. Cables can be slow and can lose packets; they
can be cut, and hosts killed, while a job runs. The machine's own network is not
touched. It needs root, and the commands ip, tc and iptables.

A lab stays until it is taken down, also when the terminal is closed. Hosts are called
h1, h2 and so on, rails 0, 1 and so on; "all" means all of them. Host h3 has the
address 10.61.1.3 on rail 1. The hosts share the machine's files and processors.

Several labs can be up at once, with different names (--name); they do not meet, even
though their addresses are the same.`,
		Example: `  muster lab up --hosts 4 --rails 2 --rate 1gbit
  muster run --lab -n 16 ./prog     four ranks on each of the four hosts
  muster lab exec h1 ping h2        any command on one host
  muster lab loss h2 5%             of the packets to h2, one in twenty is lost
  muster lab cut h2 1               its cable on rail 1 carries nothing
  muster lab mend h2 1              and does again
  muster lab rate all 100mbit
  muster lab kill h3                every process on it
  muster lab status
  muster lab down`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&name, "name", defaultLab, "which lab, if there are several")
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
	)
	return cmd
}

func newLabUpCommand(name *string) *cobra.Command {
	var cfg lab.Config
	var loss string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Make a lab",
		Long: `up makes hosts and connects them, and shows what it has made.

--rate is the speed of every cable in each direction: a host can send as much and
receive as much. Without it a cable is as fast as the machine copies. --loss is how
much of what is sent to each host is lost.`,
		Example: `  muster lab up --hosts 4
  muster lab up --hosts 4 --rails 2 --rate 1gbit --mtu 9000
  muster lab up --name slow --hosts 8 --rate 100mbit --loss 1%`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if cfg.Name = *name; *name == "" {
				return errors.New("lab: --name is empty: a lab that stays needs a name")
			}
			if cfg.Loss, err = parseLoss(loss); err != nil {
				return err
			}
			return labUp(cfg, cmd.OutOrStdout())
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&cfg.Hosts, "hosts", 2, "number of hosts, 1 to 250")
	fl.IntVar(&cfg.Rails, "rails", 1, "number of networks that each host has an interface in, 1 to 16")
	fl.IntVar(&cfg.MTU, "mtu", 1500, "largest packet")
	fl.StringVar(&cfg.Rate, "rate", "", "speed of each cable, such as 1gbit or 100mbit (default: not limited)")
	fl.StringVar(&loss, "loss", "0%", "share of the packets that are lost, such as 1%")
	return cmd
}

// labUp makes a lab. Whoever interrupts it gets none, instead of a half one.
func labUp(cfg lab.Config, out io.Writer) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stop)
	l, err := lab.Up(cfg)
	if err != nil {
		return err
	}
	select {
	case <-stop:
		return errors.Join(errors.New("lab: interrupted, and removed again"), l.Down())
	default:
		return showLab(l, out)
	}
}

func newLabDownCommand(name *string) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Take a lab down, with every process on its hosts",
		Long: `down kills every process on the hosts of a lab and removes the hosts, also those of
a lab that was not finished. It also removes what tests have left that were killed.`,
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
				fmt.Fprintf(cmd.OutOrStdout(), "lab %s is gone\n", n)
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
		Long: `status shows what the kernel says about each cable, also if somebody else has changed
it: its speed, what is lost on it, and whether it carries anything: "up", "cut" (the
host does not notice) or "unplugged" (its interface has no carrier). Without --name it
shows all labs.`,
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, a list of labs")
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
		fmt.Fprintln(out, "there is no lab; make one with: muster lab up --hosts 4")
	}
	return nil
}

// showLab prints a lab and what to do with it.
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
	fmt.Fprintf(table, "  muster lab cut%s h1 0\tsee muster lab --help for what else can break\n", which)
	fmt.Fprintf(table, "  muster lab down%s\ttake it down\n", which)
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
