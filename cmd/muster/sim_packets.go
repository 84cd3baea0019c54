package main

// muster sim --level packets: packets by kind, and the peaks of unexpected messages and
// credit. As the program of a job it makes the calls too, and compares the packets.

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/sim"
)

// packetShare divides --limit: an operation of level packets may need a link, which takes
// some hundred bytes.
const packetShare = 8

// packetKinds are the kinds of packets in the order of docs/reference/protocols.md.
var packetKinds = []string{"eager", "seg", "rts", "cts", "fin", "ack", "credit", "rtr", "revoke", "revoked", "ring", "slots"}

// packetsOf returns counts by kind in the order of packetKinds.
func packetsOf(x *sim.Result) []int64 {
	counts := make([]int64, len(packetKinds))
	for _, p := range x.Packets {
		counts[slices.Index(packetKinds, p.Kind)] = p.Count
	}
	return counts
}

func formatPackets(counts []int64) string {
	var parts []string
	for i, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", packetKinds[i], n))
		}
	}
	return strings.Join(parts, ", ")
}

// printPackets prints the packets and peaks of all figures.
func (r *simReport) printPackets(w io.Writer) {
	if r.packets == nil {
		return
	}
	fmt.Fprintln(w, "\npackets by kind, and the largest amounts at one rank:")
	for _, f := range r.figures {
		p := f.result.Peaks
		fmt.Fprintf(w, "  %d bytes, %v: %s; %d unexpected messages (rank %d), %d bytes of data; %d bytes of credit (rank %d), %d messages without; %d peers\n", f.size, f.candidate,
			formatPackets(packetsOf(f.result)), p.Unexpected, p.UnexpectedRank, p.UnexpectedBytes, p.Credit, p.CreditRank, p.NoCredit, p.Links)
	}
}

// comparePackets makes the calls as a rank of a job. Rank 0 simulates them and prints.
func (f *simFlags) comparePackets(kind coll.Kind) error {
	if _, err := startCall(kind); err != nil {
		return err
	}
	sizes, err := parseSizes(f.sizes)
	if err != nil {
		return err
	}
	if kind == coll.Barrier {
		sizes = []int{0}
	}
	for _, n := range sizes {
		if n%8 != 0 {
			return fmt.Errorf("--sizes %d: in a job, --level packets needs multiples of 8", n)
		}
	}
	list, err := simCandidates(kind, f.algorithms)
	if err != nil {
		return err
	}
	mpi.Main(func(c *mpi.Comm) error {
		j, err := jobOfPackets(c, kind)
		if err != nil {
			return err
		}
		return j.comparePackets(c, list, sizes)
	})
	return nil
}

// jobOfPackets describes the job that c is the world of.
func jobOfPackets(c *mpi.Comm, kind coll.Kind) (*simJob, error) {
	on, err := shapeOfJob(c)
	if err != nil {
		return nil, err
	}
	node, err := nodesOfRanks(c)
	if err != nil {
		return nil, err
	}
	j := &simJob{kind: kind, machine: sim.Default(), ranks: c.Size(), on: on, limit: 1 << 24, packets: &sim.Packets{}}
	if j.machine.Rails = on.rails; on.nodes > 1 {
		j.nodes = coll.NewTopology(node, on.rails)
	}
	for r := range node {
		if r == c.Rank() {
			continue
		}
		attr, cfg, err := inspect.Packets(c, r)
		if err != nil {
			return nil, err
		}
		if j.packets.P2P = cfg; node[r] == node[c.Rank()] {
			j.machine.Near.Device = &attr
		} else {
			j.machine.Far.Device = &attr
		}
	}
	return j, nil
}

func (j *simJob) comparePackets(c *mpi.Comm, list []candidate, sizes []int) error {
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "bytes\talgorithm\tsimulated packets\tpackets of the job\t")
	compared, equal := 0, 0
	for _, size := range sizes {
		for _, one := range list {
			shape := j.call(one, size).Shape
			if ok, _ := coll.Applicable(one.algorithm, &shape); !ok {
				continue
			}
			got, err := countCall(c, one, size)
			if err != nil {
				return err
			}
			if c.Rank() != 0 {
				continue
			}
			x, why, err := j.simulate(one, size)
			if err != nil || why != "" {
				return fmt.Errorf("%v: %s%w", one, why, err)
			}
			want := packetsOf(x)
			result := "different"
			if compared++; slices.Equal(got, want) {
				result = "equal"
				equal++
			}
			fmt.Fprintf(tw, "%d\t%v\t%s\t%s\t%s\n", size, one, formatPackets(want), formatPackets(got), result)
		}
	}
	if c.Rank() != 0 {
		return nil
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Printf("%s among %v: packets by kind are equal in %d of %d cases\n", j.kind, j.on, equal, compared)
	return err
}

// countCall makes a non-blocking call, which uses messages on every node, and returns the
// packets of all ranks by kind.
func countCall(c *mpi.Comm, one candidate, size int) ([]int64, error) {
	start, err := startCall(one.algorithm.Kind)
	if err != nil {
		return nil, err
	}
	d, err := c.DupWithCollective(one.algorithm.Kind.String() + "=" + one.String())
	if err != nil {
		return nil, err
	}
	if _, err := c.Ibarrier().Wait(); err != nil { // a blocking one may wake ranks by messages later
		return nil, err
	}
	before := c.World().Profile()
	if _, err := start(d, size).Wait(); err != nil {
		return nil, err
	}
	after := c.World().Profile()
	mine, sum := make([]int64, len(packetKinds)), make([]int64, len(packetKinds))
	for i, kind := range packetKinds {
		mine[i] = int64(after.Values[prof.PacketsSent(kind)] - before.Values[prof.PacketsSent(kind)])
	}
	if err := mpi.Allreduce(c, mine, sum, mpi.Sum); err != nil {
		return nil, err
	}
	return sum, d.Free()
}

// startCall returns a function that starts a call of a kind with blocks, or data, of n
// bytes.
func startCall(kind coll.Kind) (func(c *mpi.Comm, n int) mpi.Request, error) {
	switch kind {
	case coll.Barrier:
		return func(c *mpi.Comm, _ int) mpi.Request { return c.Ibarrier() }, nil
	case coll.Bcast:
		return func(c *mpi.Comm, n int) mpi.Request { return mpi.Ibcast(c, make([]float64, n/8), 0) }, nil
	case coll.Allreduce:
		return func(c *mpi.Comm, n int) mpi.Request {
			return mpi.Iallreduce(c, make([]float64, n/8), make([]float64, n/8), mpi.Sum)
		}, nil
	case coll.Allgather:
		return func(c *mpi.Comm, n int) mpi.Request {
			return mpi.Iallgather(c, make([]byte, n), make([]byte, n*c.Size()))
		}, nil
	case coll.Alltoall:
		return func(c *mpi.Comm, n int) mpi.Request {
			return mpi.Ialltoall(c, make([]byte, n*c.Size()), make([]byte, n*c.Size()))
		}, nil
	}
	return nil, fmt.Errorf("in a job, --level packets compares barrier, bcast, allreduce, allgather and alltoall")
}
