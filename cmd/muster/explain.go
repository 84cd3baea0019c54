package main

// muster explain: the protocol of each message size and its cost, the network between
// hosts (explain_network.go), the algorithm of a collective (explain_collective.go).

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

func newExplainCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Show which protocol carries messages of which size, and why",
		Long: `explain starts two ranks on this machine and prints, for each range of message
sizes, the protocol with the lowest cost by the cost model of the device. It then prints
when receives offer their buffers ahead of the sender, what progresses large messages
while a rank computes, and when the buffers of short messages are registered.`,
		Example: `  muster explain
  MUSTER_RENDEZVOUS=get muster explain     the effect of a setting
  muster run -n 16 muster explain          in a job whose ranks share cores
  muster explain network                   the network between hosts
  muster explain allreduce --size 64KB -n 16   the algorithm of a collective`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRanks(cmd, 2, func(c *mpi.Comm) error { return explain(c, asJSON) })
		},
	}
	addJSONFlag(cmd, &asJSON)
	cmd.AddCommand(newExplainNetworkCommand())
	for _, kind := range tunable {
		cmd.AddCommand(newExplainCollectiveCommand(kind))
	}
	return cmd
}

// inJob reports whether this process is a rank of a job.
func inJob() bool { return os.Getenv(pmi.EnvFD) != "" || os.Getenv(pmi.EnvRank) != "" }

// runRanks calls f as a rank of a job. Otherwise it starts this command as the ranks.
func runRanks(cmd *cobra.Command, ranks int, f func(c *mpi.Comm) error) error {
	if !inJob() {
		return startSelf(cmd, ranks)
	}
	mpi.Main(f)
	return nil
}

// startSelf runs this command again as the ranks of a job.
func startSelf(cmd *cobra.Command, ranks int, more ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwardedSignals()...)
	defer signal.Stop(signals)
	result, err := launch.Run(cmd.Context(), launch.Config{
		Ranks: ranks, Prog: self, Args: append(slices.Clone(os.Args[1:]), more...), Env: os.Environ(), Signals: signals,
		Output: launch.Output{Stdout: os.Stdout, Stderr: os.Stderr, Label: launch.LabelNever},
	})
	if err != nil {
		return err
	}
	return statusOf(result.Status)
}

// explanation is what muster explain shows.
type explanation struct {
	Ranks     int             `json:"ranks"`
	Peer      int             `json:"peer"` // the rank to which messages go
	Device    string          `json:"device"`
	Protocols []protocolRange `json:"protocols"`
	// OffersFrom is the length of the shortest buffer that is offered in advance; 0: none is.
	OffersFrom int          `json:"offers_from"`
	Progress   string       `json:"progress"`
	Buffers    []bufferUses `json:"buffers,omitempty"`

	costs []inspect.BufferCost
}

// bufferUses is the number of uses after which registering a buffer pays off; 0: never.
type bufferUses struct {
	From     int     `json:"from"`
	To       int     `json:"to"`
	Register float64 `json:"register_ns"`
	Copy     float64 `json:"copy_ns"`
	Send     uint32  `json:"send_uses"`
	Isend    uint32  `json:"isend_uses"`
	OneSided uint32  `json:"one_sided_uses"`
}

// protocolRange is a range of sizes with one protocol.
type protocolRange struct {
	From     int     `json:"from"`
	To       int     `json:"to,omitempty"` // 0: any
	Protocol string  `json:"protocol"`
	Fixed    float64 `json:"ns"`
	PerKiB   float64 `json:"ns_per_kib"`
}

func explain(c *mpi.Comm, asJSON bool) error {
	if c.Rank() != 0 {
		return nil
	}
	peer := min(1, c.Size()-1)
	choices, err := inspect.Explain(c, peer)
	if err != nil {
		return err
	}
	x := explanation{Ranks: c.Size(), Peer: peer, Device: inspect.DeviceName(c, peer), Progress: progressInWords(c)}
	for _, ch := range choices {
		row := protocolRange{ch.Lo, ch.Hi, ch.Protocol, ch.Fixed, ch.PerByte * 1024}
		if ch.Hi == inspect.MaxBytes {
			row.To = 0
		}
		x.Protocols = append(x.Protocols, row)
	}
	s, err := inspect.Speculation(c, peer)
	if err != nil {
		return err
	}
	x.OffersFrom = s.From
	if x.costs, _, err = inspect.FrequentBuffers(c, peer); err != nil {
		return err
	}
	for _, b := range x.costs {
		x.Buffers = append(x.Buffers, bufferUses{b.Lo, b.Hi, b.Register, b.Copy, b.Send, b.Isend, b.OneSided})
	}
	if asJSON {
		return printJSON(os.Stdout, x)
	}
	x.print()
	return nil
}

func (x *explanation) print() {
	fmt.Printf("messages from rank 0 to rank %d of %d, over %s\n\n", x.Peer, x.Ranks, x.Device)
	fmt.Printf("%12s %12s  %-10s  %s\n", "from bytes", "to", "protocol", "cost: ns + ns/KiB")
	for _, row := range x.Protocols {
		hi := "any"
		if row.To > 0 {
			hi = strconv.Itoa(row.To)
		}
		fmt.Printf("%12d %12s  %-10s  %.0f + %.1f\n", row.From, hi, row.Protocol, row.Fixed, row.PerKiB)
	}
	fmt.Println()
	switch mode := os.Getenv("MUSTER_SPECULATE"); {
	case x.OffersFrom == 0:
		fmt.Printf("Receives do not offer their buffers in advance (MUSTER_SPECULATE=%s): %s\n", cmp.Or(mode, "by device"), whyNoOffers(mode))
	case mode == "always":
		fmt.Printf("Irecv of %d bytes or more offers its buffer to the sender in advance; the sender writes all data.\n", x.OffersFrom)
	default:
		fmt.Printf("Irecv of %d bytes or more offers its buffer to the sender in advance; a receiver that waits copies a part of the data.\n"+
			"It stops for an envelope (source, tag) if less than 80 %% of the offers are used, and sends a trial offer now and then.\n", x.OffersFrom)
	}
	fmt.Printf("Progress: %s\n", x.Progress)
	explainFrequent(x.costs)
}

func whyNoOffers(mode string) string {
	if mode == "never" {
		return "speculation is switched off."
	}
	return "no data arrives on this device while a rank computes, so an offer gains nothing."
}

// progressInWords describes what progresses large messages while a rank computes.
func progressInWords(c *mpi.Comm) string {
	if _, on := inspect.Progress(c); on {
		return "async: a progress thread in each rank transfers large messages while the rank computes, and sleeps otherwise"
	}
	return "polling: large messages progress only while a rank is in a call (MUSTER_PROGRESS=async: also while it computes)"
}
