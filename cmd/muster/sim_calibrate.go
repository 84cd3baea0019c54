package main

// muster sim calibrate: measures the machine of a job for the simulator. It is the program
// of a job on several hosts, or of one host; alone it starts ranks on this host.

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/rdma/shm"
	"github.com/muster-mpi/muster/sim"
)

type calibrateFlags struct {
	ranks  int
	out    string
	lab    bool
	rounds int
}

func newSimCalibrateCommand() *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure this machine for the simulator",
		Long: `calibrate measures round trips between ranks, the processor time of messages and the time
that a rank waits for its core, and writes a machine file. It is the program of a job on
the hosts of interest; by itself it starts ranks on this host.

The hosts of a lab share the cores of this host: use --lab there.`,
		Example: `  muster sim calibrate -n 4 --out machine.json
  muster run --lab -n 16 muster sim calibrate --lab --out lab.json
  muster run --hosts a:4,b:4 muster sim calibrate --out cluster.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.rounds < 1 {
				return fmt.Errorf("sim calibrate: --rounds %d: it must be above 0", f.rounds)
			}
			return runRanks(cmd, f.ranks, f.measure)
		},
	}
	fl := cmd.Flags()
	fl.IntVarP(&f.ranks, "ranks", "n", 2, "number of ranks to start on this host")
	fl.StringVarP(&f.out, "out", "o", "muster-machine.json", "machine file")
	fl.BoolVar(&f.lab, "lab", false, "the hosts are those of a lab: they share the cores of this host")
	fl.IntVar(&f.rounds, "rounds", 5, "measurements of each figure; the shortest time counts")
	return cmd
}

// calibrationSizes are the sizes of the measured messages.
var calibrationSizes = []int{8, 1 << 10, 8 << 10, 32 << 10, 128 << 10, 1 << 20}

// measure is one rank.
func (f *calibrateFlags) measure(c *mpi.Comm) error {
	node, err := nodesOfRanks(c)
	if err != nil {
		return err
	}
	on, err := shapeOfJob(c)
	if err != nil {
		return err
	}
	k, err := bench.Calibrate(c, node, calibrationSizes, f.rounds)
	if err != nil || c.Rank() != 0 {
		return err
	}
	m := machineOf(&k, c.Size(), on)
	m.About = fmt.Sprintf("calibrated with %v over %s", on, inspect.DeviceName(c, c.Size()-1))
	if f.lab {
		m.NodesPerHost = on.nodes
		m.About += ", in a lab"
	}
	setPolls(m, &k, node)
	for r := 1; r < c.Size(); r++ {
		level := &m.Far
		if node[r] == node[0] {
			level = &m.Near
		}
		if level.Eager, err = eagerTo(c, r); err != nil {
			return err
		}
		attr, _, err := inspect.Packets(c, r)
		if err != nil {
			return err
		}
		level.Device = &attr
	}
	if err := m.Check(); err != nil {
		return err
	}
	if err := os.WriteFile(f.out, m.Marshal(), 0o644); err != nil {
		return fmt.Errorf("sim calibrate: %w", err)
	}
	fmt.Printf("%s: %s; its error is unknown before muster sim --level validate\n", f.out, m.About)
	return nil
}

// nodesOfRanks returns the node of each rank, numbered by their first ranks.
func nodesOfRanks(c *mpi.Comm) ([]int, error) {
	local, err := c.SplitType(mpi.ByNode, c.Rank())
	if err != nil {
		return nil, err
	}
	first, err := mpi.BcastValue(local, int64(c.Rank()), 0)
	if err != nil {
		return nil, err
	}
	all := make([]int64, c.Size())
	if err := mpi.Allgather(c, []int64{first}, all); err != nil {
		return nil, err
	}
	node := make([]int, len(all))
	for r, n := range all {
		node[r] = int(n)
	}
	return node, local.Free()
}

// machineOf converts measurements into LogGP.
func machineOf(k *bench.Calibration, ranks int, on jobShape) *sim.Machine {
	m := sim.Default()
	cores := shm.OnlineCores() // a rank may be bound to some of them
	*m = sim.Machine{Nodes: on.nodes, Rails: on.rails, Cores: cores, Near: m.Near, Far: m.Far,
		Copy: k.Copy * 1e3, Reduce: k.Reduce * 1e3, Memory: k.Copy * 1e3 / float64(cores), Stripe: m.Stripe}
	if k.Near != nil {
		m.Near = levelOf(k.Near)
		m.Near.G, m.Near.Gap = 0, 0
	}
	if k.Far != nil {
		m.Far = levelOf(k.Far)
		m.Far.G *= float64(on.rails) // long messages use all
	}
	return m
}

// levelOf converts the measurements of a level: o is the processor time, L the rest of a
// short message, G the rest of a byte of a long one.
func levelOf(points []bench.CalibrationPoint) sim.Level {
	var l sim.Level
	for _, p := range points {
		o := p.Processor * 1e3
		if len(l.O) > 0 { // because of noise a longer message may seem to take less
			o = max(o, l.O[len(l.O)-1].Nanos)
		}
		l.O = append(l.O, sim.Point{Bytes: p.Bytes, Nanos: min(o, p.Half*1e3)})
	}
	first, last := points[0], points[len(points)-1]
	l.L = max(first.Half*1e3-2*l.O.At(first.Bytes), 50)
	l.G = max(last.Half*1e3-2*l.O.At(last.Bytes)-l.L, 0) / float64(last.Bytes)
	l.Gap = l.O[0].Nanos / 2
	return l
}

// setPolls derives from the ring what a rank that waits costs the others.
func setPolls(m *sim.Machine, k *bench.Calibration, node []int) {
	hosts := max(m.Nodes/max(m.NodesPerHost, 1), 1)
	waiting := len(node)/hosts - 1
	if waiting < m.Cores {
		return
	}
	hop := 0.0
	for r := range node {
		if p := (r + 1) % len(node); node[r] == node[p] {
			hop += k.Near[0].Half
		} else {
			hop += k.Far[0].Half
		}
	}
	slice := max(k.Ring-hop/float64(len(node)), 0) * 1e3
	m.Switch = min(slice, 1000)
	m.Poll = (slice - m.Switch) * float64(m.Cores) / float64(waiting)
}

// eagerTo returns the longest message to a rank that is sent without asking.
func eagerTo(c *mpi.Comm, rank int) (int, error) {
	list, err := inspect.Explain(c, rank)
	if err != nil {
		return 0, err
	}
	most := 0
	for _, choice := range list {
		if choice.Protocol == "eager" {
			most = max(most, choice.Hi)
		}
	}
	return most, nil
}
