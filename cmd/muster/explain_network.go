package main

// muster explain network: what this host could use between hosts, what a job
// would take, and why.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/rdma/ofi"
)

func newExplainNetworkCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Tell which fabric and interface carry messages between hosts, and why",
		Long: `network lists what libfabric offers on this host, one line each, what a job
would take, and why not the others. Ranks of one host use shared memory and need
none of it.

MUSTER_NETWORK chooses the provider, MUSTER_INTERFACE the interface; both are
obeyed here as a job would.`,
		Example: `  muster explain network
  muster explain network --all                          also what can never be used
  MUSTER_NETWORK='ofi:tcp;ofi_rxm' muster explain network
  MUSTER_INTERFACE=eth1 muster explain network
  muster run --hosts a,b muster explain network         with proof that they reach each other`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := mpi.ConfigFromEnv(os.Environ())
			if err != nil {
				return err
			}
			return explainNetwork(cmd.Context(), cmd.OutOrStdout(), cfg, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every endpoint type of every provider")
	return cmd
}

func explainNetwork(ctx context.Context, w io.Writer, cfg *mpi.Config, all bool) error {
	if cfg.Network == "none" {
		fmt.Fprintln(w, "no network: MUSTER_NETWORK is none; a job has to run on one host")
		return nil
	}
	if cfg.Network == "iwarp" {
		return explainSoftware(ctx, w, cfg, "MUSTER_NETWORK is iwarp")
	}
	offers, version, err := inspect.NetworkOffers(cfg)
	if errors.Is(err, ofi.ErrMissing) && cfg.Network == "" {
		return explainSoftware(ctx, w, cfg, err.Error())
	}
	if err != nil {
		return fmt.Errorf("explain: network: %w", err)
	}
	fmt.Fprintf(w, "libfabric %s\n", version)
	if cfg.Encrypt {
		fmt.Fprintln(w, "a job is refused: MUSTER_ENCRYPT is on, and libfabric does not encrypt; set MUSTER_NETWORK=iwarp")
	}
	taken := -1
	for i := range offers {
		if offers[i].Taken {
			taken = i
		}
	}
	if taken < 0 {
		fmt.Fprintln(w, "nothing here can carry messages between hosts")
	} else {
		o := &offers[taken]
		fmt.Fprintf(w, "taken: %s on %s (%s): %s\nwaits by: %s\n", o.Provider, o.Domain, cmp.Or(o.Address, "no address"), o.Reason, o.Wait)
		if o.Registers {
			fmt.Fprintln(w, "memory is registered: its pages are locked while it is in use")
		}
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, " \tprovider\tdomain\taddress\tendpoint\tspeed\twhy")
	hidden := 0
	for i := range offers {
		o := &offers[i]
		if !all && o.Endpoint != "RDM" {
			hidden++
			continue
		}
		mark := " "
		if o.Taken {
			mark = "*"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", mark, o.Provider, o.Domain, cmp.Or(o.Address, "-"), o.Endpoint, speed(o.Speed), o.Reason)
	}
	t.Flush()
	if hidden > 0 {
		fmt.Fprintf(w, "\n%d offers of connected and plain datagram endpoints are not shown; --all shows them\n", hidden)
	}
	return nil
}

// explainSoftware tells of the network that needs no library. In a job its hosts dial each
// other, and each reports what has answered.
func explainSoftware(ctx context.Context, w io.Writer, cfg *mpi.Config, why string) error {
	n, err := inspect.SoftwareNetwork(ctx, cfg)
	if n.Host == "" && err == nil {
		return nil // another rank of this host tells
	}
	encrypted := ""
	if cfg.Encrypt {
		encrypted = ", encrypted"
	}
	if n.Verified {
		fmt.Fprintf(w, "%s: software iWARP, channel %s%s\n", n.Host, cmp.Or(cfg.Channel, "hybrid"), encrypted)
	} else {
		fmt.Fprintf(w, "taken: software iWARP, channel %s%s: %s\n", cmp.Or(cfg.Channel, "hybrid"), encrypted, why)
	}
	if n.Table != "" {
		fmt.Fprintf(w, "%s\n\n%s", n.Summary, n.Table)
	}
	if err != nil {
		return fmt.Errorf("explain: network: %w", err)
	}
	if !n.Verified {
		fmt.Fprintln(w, "\nThat is what names and kinds of the interfaces promise. When a job starts, its hosts dial\neach other over every interface that might do, and those that answer are rails:\nmuster run --hosts a,b muster explain network shows it.")
	}
	return nil
}

// speed writes bits per second as people say it.
func speed(bits uint64) string {
	switch {
	case bits == 0:
		return "-"
	case bits >= 1e9:
		return fmt.Sprintf("%g Gbit/s", float64(bits)/1e9)
	}
	return fmt.Sprintf("%g Mbit/s", float64(bits)/1e6)
}
