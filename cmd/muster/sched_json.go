package main

// muster sched --json.

import (
	"io"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/sched"
)

// algorithmInfo describes an algorithm of a collective.
type algorithmInfo struct {
	Collective string      `json:"collective"`
	Algorithm  string      `json:"algorithm"`
	About      string      `json:"about"`
	Params     []paramInfo `json:"params,omitempty"`
	Needs      string      `json:"needs,omitempty"`
	Source     string      `json:"source"`
}

type paramInfo struct {
	Name   string `json:"name"`
	About  string `json:"about"`
	Values []int  `json:"values"` // suggested; the first is the default
}

func printAlgorithms(w io.Writer, all []coll.Algorithm) error {
	list := []algorithmInfo{}
	for _, a := range all {
		info := algorithmInfo{Collective: a.Kind.String(), Algorithm: a.Name, About: a.About, Needs: needsOf(a.Needs), Source: a.Ref}
		for _, p := range a.Params {
			info.Params = append(info.Params, paramInfo{p.Name, p.About, p.Values})
		}
		list = append(list, info)
	}
	return printJSON(w, list)
}

// scheduleInfo describes the schedules of all ranks.
type scheduleInfo struct {
	Title    string        `json:"title"`
	Steps    int           `json:"steps"`
	Messages int           `json:"messages"`
	Bytes    int           `json:"bytes"`
	Sent     int           `json:"most_sent"` // by one rank, in bytes
	Received int           `json:"most_received"`
	Scratch  int           `json:"most_scratch"`
	Nodes    []nodeTraffic `json:"nodes,omitempty"`
	Proved   bool          `json:"proved"`
	// Ranks has the operations of the ranks that --text or --rank selects.
	Ranks []rankSchedule `json:"ranks,omitempty"`
}

// nodeTraffic is the traffic of a node, in messages and bytes.
type nodeTraffic struct {
	Node     int `json:"node"`
	Ranks    int `json:"ranks"`
	Out      int `json:"connections_out"`
	In       int `json:"connections_in"`
	Sent     int `json:"bytes_sent"`
	Received int `json:"bytes_received"`
	Written  int `json:"shared_written"`
	Read     int `json:"shared_read"`
}

type rankSchedule struct {
	Rank       int      `json:"rank"`
	Operations []string `json:"operations"`
}

func printSchedules(w io.Writer, title string, t sched.Totals, graphs []*sched.Graph, nodes *coll.Topology, shown func(rank int) bool) error {
	x := scheduleInfo{Title: title, Steps: t.Steps, Messages: t.Messages, Bytes: t.Bytes, Sent: t.MostSent, Received: t.MostReceived, Scratch: t.Scratch, Proved: true}
	if nodes != nil {
		traffic, err := sched.TrafficOf(graphs, nodes.NodeList())
		if err != nil {
			return err
		}
		for n, t := range traffic {
			x.Nodes = append(x.Nodes, nodeTraffic{n, nodes.Count(n), t.Out, t.In, t.Sent, t.Received, t.Written, t.Read})
		}
	}
	for r, g := range graphs {
		if shown(r) {
			lines := slices.Collect(strings.Lines(g.String()))[1:] // the first describes the graph
			for i := range lines {
				lines[i] = strings.TrimSpace(lines[i])
			}
			x.Ranks = append(x.Ranks, rankSchedule{r, lines})
		}
	}
	return printJSON(w, x)
}
