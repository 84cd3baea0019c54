package main

// muster bench verbs-NAME: devices of package rdma and plain sockets, without MPI. By
// default it starts itself as two processes; as one of those, or with --listen or --dial,
// it is the leader or the follower of the benchmark.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
)

type verbsFlags struct {
	params       bench.VerbsParams
	sizes        []string
	json         bool
	plot         string
	address      string
	listen, dial string
	rate         string  // speed of the lab's cables
	loss         float64 // loss rate of the lab's cables
	meet         string  // address where the two started processes connect
}

// verbsMeetTimeout limits how long one process waits for the other.
const verbsMeetTimeout = 60 * time.Second

func newVerbsBenchmark(b bench.Verbs) *cobra.Command {
	var f verbsFlags
	cmd := &cobra.Command{
		Use:   b.Name,
		Short: b.Doc,
		Long: b.Long + `

The command starts two processes. The listed devices alternate in rounds and are reopened
each time. The result is the median, minimum and maximum over the rounds, and the median of
the ratios to the first device.

Devices: ` + verbsDeviceDocs() + `. Providers are such as
ofi:tcp;ofi_rxm, ofi:udp;ofi_rxd and ofi:net, in a program built with -tags ofi.

Between two hosts, or two network namespaces, start the command on both: with --listen on
the one that measures and prints, with --dial on the other, each with its own --address. The
dialing side needs no other flags.`,
		Example: `  muster bench ` + b.Name + `
  muster bench ` + b.Name + ` --device ` + strings.Join(b.Devices, ",") + ` --rounds 9 --json
  muster bench ` + b.Name + ` --listen 10.0.0.1:7000 --address 10.0.0.1
  muster bench ` + b.Name + ` --dial 10.0.0.1:7000 --address 10.0.0.2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(b); err != nil {
				return fmt.Errorf("bench %s: %w", b.Name, err)
			}
			if err := f.run(cmd, b); err != nil {
				return fmt.Errorf("bench %s: %w", b.Name, err)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVarP(&f.params.Devices, "device", "d", nil, "devices to compare: "+verbsDeviceNames()+" (default: "+strings.Join(b.Devices, ",")+")")
	offerValues(cmd, "device", strings.TrimSuffix(verbsDeviceNames(), "PROVIDER"))
	fl.StringVar(&f.params.Against, "against", "", "device that the others are compared with (default: the first)")
	fl.IntVar(&f.params.Rounds, "rounds", 5, "number of rounds")
	fl.DurationVar(&f.params.Time, "time", b.Time, "measuring time of each device per round")
	fl.BoolVar(&f.json, "json", false, "print one JSON object per line: bench, device, size, metric, unit, value, min, p50, p99 (the maximum), way; against for ratios")
	fl.StringVar(&f.plot, "plot", "", "draw the result into this SVG file")
	fl.StringVar(&f.address, "address", "127.0.0.1", "local IP address for the devices")
	fl.StringVar(&f.listen, "listen", "", "measure, and wait for the other process at this address and port")
	fl.StringVar(&f.dial, "dial", "", "follow the process that listens at this address and port")
	fl.StringVar(&f.rate, "rate", "", "run between two network namespaces with a cable of this speed, such as 1gbit (needs root)")
	fl.Float64Var(&f.loss, "loss", 0, "run between two network namespaces with this loss rate in each direction, such as 0.01 (needs root)")
	fl.StringVar(&f.meet, "meet", "", "address where the two started processes connect")
	if err := fl.MarkHidden("meet"); err != nil {
		panic(err) // the flag is defined above
	}
	if b.Sizes != nil {
		fl.StringSliceVarP(&f.sizes, "sizes", "m", nil, "message sizes in bytes, such as 8, 64K or 1:1M")
		fl.IntVarP(&f.params.Window, "window", "W", 0, "messages in flight (default 64, and 16 MB at most)")
	}
	if b.Connections != nil {
		fl.IntSliceVar(&f.params.Connections, "connections", nil, "numbers of connections (default: powers of two up to 256)")
	}
	if b.Peers > 0 {
		fl.IntVar(&f.params.Peers, "peers", b.Peers, "number of idle peers")
	}
	return cmd
}

func verbsDeviceNames() string {
	names, _ := bench.VerbsDevices()
	return strings.Join(names, ", ")
}

func verbsDeviceDocs() string {
	names, docs := bench.VerbsDevices()
	for i := range docs {
		docs[i] = names[i] + " is " + docs[i]
	}
	return strings.Join(docs, ", ")
}

// check rejects invalid flags before anything is started.
func (f *verbsFlags) check(b bench.Verbs) error {
	for i, name := range f.params.Devices {
		if err := bench.CheckVerbsDevice(name); err != nil {
			return fmt.Errorf("--device %s: %w", name, err)
		}
		if slices.Contains(f.params.Devices[:i], name) {
			return fmt.Errorf("--device %s is given twice", name)
		}
	}
	devices := f.params.Devices
	if devices == nil {
		devices = b.Devices
	}
	if f.params.Against != "" && !slices.Contains(devices, f.params.Against) {
		return fmt.Errorf("--against %s: not among the devices %s", f.params.Against, strings.Join(devices, ","))
	}
	if f.params.Rounds < 1 {
		return fmt.Errorf("--rounds %d: each device must run at least once", f.params.Rounds)
	}
	if f.params.Time <= 0 {
		return fmt.Errorf("--time %v: use a time such as 100ms", f.params.Time)
	}
	if _, err := netip.ParseAddr(f.address); err != nil {
		return fmt.Errorf("--address %s: not an IP address", f.address)
	}
	if f.listen != "" && f.dial != "" {
		return fmt.Errorf("--listen %s and --dial %s exclude each other: use one", f.listen, f.dial)
	}
	if err := f.checkLab(); err != nil {
		return err
	}
	sizes, err := parseSizes(f.sizes)
	if err != nil {
		return err
	}
	if slices.Contains(sizes, 0) {
		return fmt.Errorf("--sizes %s: empty messages cannot be measured; use 1 byte or more", strings.Join(f.sizes, ","))
	}
	if len(sizes) > 0 {
		f.params.Sizes = sizes
	}
	return nil
}

func (f *verbsFlags) run(cmd *cobra.Command, b bench.Verbs) error {
	listen, dial := f.listen, f.dial
	switch {
	case listen != "" || dial != "":
	case f.inLab():
		return f.startInLab(cmd)
	case f.meet == "" && os.Getenv(pmi.EnvFD) != "":
		return errors.New("the benchmark starts its two processes itself and cannot run in a job: start it without muster run, or by hand with --listen and --dial")
	case f.meet == "":
		meet, err := freePort()
		if err != nil {
			return err
		}
		return startSelf(cmd, 2, "--meet="+meet)
	case os.Getenv(pmi.EnvRank) == "0":
		listen = f.meet
	default:
		dial = f.meet
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), verbsMeetTimeout)
	defer cancel()
	if dial != "" {
		conn, err := dialVerbs(ctx, dial)
		if err != nil {
			return err
		}
		defer conn.Close()
		return bench.NewVerbsSession(conn, bench.VerbsEndpoint{Address: f.address, Side: 1}, bench.OpenVerbsDevice).Follow()
	}
	conn, err := awaitVerbs(ctx, listen)
	if err != nil {
		return err
	}
	defer conn.Close()
	return f.lead(b, conn)
}

// lead runs the benchmark as the leader and prints the results.
func (f *verbsFlags) lead(b bench.Verbs, conn net.Conn) error {
	s := bench.NewVerbsSession(conn, bench.VerbsEndpoint{Address: f.address}, bench.OpenVerbsDevice)
	p := bench.VerbsPrinter{W: os.Stdout, JSON: f.json, B: b, Round: f.params.Rounds}
	var rows []bench.VerbsRow
	var failed error
	emit := func(row bench.VerbsRow) {
		rows = append(rows, row)
		if err := p.Print(row); err != nil && failed == nil {
			failed = err
		}
	}
	err := b.Lead(s, f.params, func(row bench.VerbsRow) {
		emit(row)
		if share, ok := f.shareOfLink(row); ok {
			emit(share)
		}
	})
	if err == nil {
		err = failed
	}
	if err == nil && len(rows) == 0 {
		return fmt.Errorf("none of the devices supports the benchmark: %w", rdma.ErrUnsupported)
	}
	if err != nil || f.plot == "" {
		return err
	}
	return writeChart(f.plot, bench.VerbsChart(b, rows))
}

// awaitVerbs waits for the other process to connect.
func awaitVerbs(ctx context.Context, at string) (net.Conn, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("wait for the other process: %w", err)
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	conn, err := l.Accept()
	if err != nil {
		return nil, fmt.Errorf("no process has connected to %s within %v; start the other one with --dial %s: %w", at, verbsMeetTimeout, at, err)
	}
	return conn, nil
}

// dialVerbs connects to the other process and retries until it listens.
func dialVerbs(ctx context.Context, at string) (net.Conn, error) {
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", at)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no process has listened at %s for %v; start the other one there with --listen %s: %w", at, verbsMeetTimeout, at, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
