package main

// Schedules of ranks on several nodes: the syntax of --nodes and the traffic of each node.

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/sched"
)

// parseNodes parses 4x4, or the list of the numbers of ranks of each node. It returns
// nil for an empty text.
func parseNodes(text string) (*coll.Topology, error) {
	if text == "" {
		return nil, nil
	}
	wrong := fmt.Errorf("--nodes %s: use 4x4 for four nodes of four ranks, or 3,1,4 for three nodes with 3, 1 and 4 ranks, at most 4096 ranks", text)
	var counts []int
	if nodes, each, ok := strings.Cut(text, "x"); ok {
		n, err := strconv.Atoi(nodes)
		p, err2 := strconv.Atoi(each)
		if err != nil || err2 != nil || n < 1 || p < 1 || n > 4096 || p > 4096 {
			return nil, wrong
		}
		for range n {
			counts = append(counts, p)
		}
	} else {
		for _, word := range strings.Split(text, ",") {
			p, err := strconv.Atoi(word)
			if err != nil || p < 1 {
				return nil, wrong
			}
			counts = append(counts, p)
		}
	}
	all := 0
	for _, p := range counts {
		if all += p; all > 4096 {
			return nil, wrong
		}
	}
	return coll.Consecutive(1, counts...), nil
}

// printTraffic prints the traffic of each node, in the measures of T2 table 5.1.
func printTraffic(w io.Writer, graphs []*sched.Graph, nodes *coll.Topology) error {
	traffic, err := sched.TrafficOf(graphs, nodes.NodeList())
	if err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "node\tranks\tconnections out\tin\tbytes sent\treceived\tshared memory written\tread\t")
	for n, t := range traffic {
		fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", n, nodes.Count(n), t.Out, t.In, t.Sent, t.Received, t.Written, t.Read)
	}
	return tw.Flush()
}
