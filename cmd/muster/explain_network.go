package main

// muster explain network: the networks this host offers, the one a job would use, and
// why.

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
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Show which network and interfaces carry messages between hosts, and why",
		Long: `network shows what carries messages between hosts. Ranks on one host use shared
memory and need no network.

A program built with -tags ofi uses libfabric if it is installed: network lists the
offers of libfabric's providers on this host, the one a job would use, and the reason
for each of the others. Without libfabric, and with MUSTER_NETWORK=iwarp, a job uses
software iWARP: network then prints its channel (MUSTER_CHANNEL) and the interfaces
that may serve as rails. Started as a job on several hosts, it also connects the hosts
over each interface and prints which of them answer.

MUSTER_NETWORK selects iwarp, ofi, ofi:PROVIDER or none; MUSTER_INTERFACE selects the
interface. Both apply here as in a job.`,
		Example: `  muster explain network
  muster explain network --all                          also endpoint types that Muster cannot use
  MUSTER_NETWORK=iwarp muster explain network
  MUSTER_NETWORK='ofi:tcp;ofi_rxm' muster explain network
  MUSTER_INTERFACE=eth1 muster explain network
  muster run --hosts a,b muster explain network         check that the hosts reach each other`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := mpi.ConfigFromEnv(os.Environ())
			if err != nil {
				return err
			}
			if asJSON {
				return networkAsJSON(cmd.Context(), cmd.OutOrStdout(), cfg)
			}
			return explainNetwork(cmd.Context(), cmd.OutOrStdout(), cfg, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every endpoint type of every libfabric provider")
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// networkInfo is what muster explain network --json shows.
type networkInfo struct {
	Network    string      `json:"network"` // none, iwarp or ofi
	Channel    string      `json:"channel,omitempty"`
	Encrypted  bool        `json:"encrypted"`
	Host       string      `json:"host,omitempty"`
	Interfaces string      `json:"interfaces,omitempty"` // in one line
	Verified   bool        `json:"verified"`             // the hosts have reached each other
	Version    string      `json:"libfabric,omitempty"`
	Offers     []offerInfo `json:"offers,omitempty"`
}

// offerInfo is an endpoint that libfabric offers.
type offerInfo struct {
	Provider string `json:"provider"`
	Domain   string `json:"domain"`
	Address  string `json:"address,omitempty"`
	Endpoint string `json:"endpoint"`
	Speed    uint64 `json:"bits_per_second,omitempty"`
	Used     bool   `json:"used"`
	Reason   string `json:"reason"`
}

func networkAsJSON(ctx context.Context, w io.Writer, cfg *mpi.Config) error {
	info := networkInfo{Network: "none", Encrypted: cfg.Encrypt}
	if cfg.Network == "none" {
		return printJSON(w, info)
	}
	var err error
	var offers []ofi.Offer
	if cfg.Network != "iwarp" {
		offers, info.Version, err = inspect.NetworkOffers(cfg)
	}
	for _, o := range offers {
		info.Offers = append(info.Offers, offerInfo{o.Provider, o.Domain, o.Address, o.Endpoint, o.Speed, o.Taken, o.Reason})
	}
	switch {
	case cfg.Network == "iwarp" || errors.Is(err, ofi.ErrMissing) && cfg.Network == "":
		n, err := inspect.SoftwareNetwork(ctx, cfg)
		if err != nil {
			return fmt.Errorf("explain: network: %w", err)
		}
		if n.Host == "" {
			return nil // another rank of this host reports
		}
		info.Network, info.Channel, info.Host, info.Interfaces, info.Verified = "iwarp", cmp.Or(cfg.Channel, "hybrid"), n.Host, n.Summary, n.Verified
	case err != nil:
		return fmt.Errorf("explain: network: %w", err)
	default:
		info.Network = "ofi"
	}
	return printJSON(w, info)
}

func explainNetwork(ctx context.Context, w io.Writer, cfg *mpi.Config, all bool) error {
	if cfg.Network == "none" {
		fmt.Fprintln(w, "no network: MUSTER_NETWORK is none; a job must run on one host")
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
		fmt.Fprintln(w, "no provider on this host can carry messages between hosts")
	} else {
		o := &offers[taken]
		fmt.Fprintf(w, "used: %s on %s (%s): %s\nwaits by: %s\n", o.Provider, o.Domain, cmp.Or(o.Address, "no address"), o.Reason, o.Wait)
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
		fmt.Fprintf(w, "\n%d offers of connected and datagram endpoints are not shown; --all shows them\n", hidden)
	}
	return nil
}

// explainSoftware describes the built-in network, software iWARP. In a job the hosts
// connect to each other, and one rank of each host reports which addresses answered.
func explainSoftware(ctx context.Context, w io.Writer, cfg *mpi.Config, why string) error {
	n, err := inspect.SoftwareNetwork(ctx, cfg)
	if n.Host == "" && err == nil {
		return nil // another rank of this host reports
	}
	encrypted := ""
	if cfg.Encrypt {
		encrypted = ", encrypted"
	}
	if n.Verified {
		fmt.Fprintf(w, "%s: software iWARP, channel %s%s\n", n.Host, cmp.Or(cfg.Channel, "hybrid"), encrypted)
	} else {
		fmt.Fprintf(w, "used: software iWARP, channel %s%s: %s\n", cmp.Or(cfg.Channel, "hybrid"), encrypted, why)
	}
	if n.Table != "" {
		fmt.Fprintf(w, "%s\n\n%s", n.Summary, n.Table)
	}
	if err != nil {
		return fmt.Errorf("explain: network: %w", err)
	}
	if !n.Verified {
		fmt.Fprintln(w, "\nThis list comes from the names and types of the interfaces. When a job starts, its hosts\nconnect to each other over every candidate; those that answer become rails. To check them:\nmuster run --hosts a,b muster explain network")
	}
	return nil
}

// speed formats bits per second.
func speed(bits uint64) string {
	switch {
	case bits == 0:
		return "-"
	case bits >= 1e9:
		return fmt.Sprintf("%g Gbit/s", float64(bits)/1e9)
	}
	return fmt.Sprintf("%g Mbit/s", float64(bits)/1e6)
}
