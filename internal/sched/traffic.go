package sched

// The cost of a collective for each node, counted from the graphs of all ranks: the
// measures of T2 5.5.4 (table 5.1).

import "fmt"

// Traffic counts the messages of one node.
type Traffic struct {
	// Out is the largest number of connections to other nodes on which the node sends
	// in one step, In the largest number on which it receives.
	Out, In int
	// Sent and Received are bytes to and from other nodes.
	Sent, Received int
	// A message within the node is written to shared memory by one rank and read by
	// another. Data that a rank sends unchanged to several ranks of its node is
	// written once. Copies into and out of the shared buffer count likewise.
	Writes, Reads int
	Written, Read int // bytes
	// HandOvers are parts of the shared buffer handed over, without copies.
	HandOvers int
	// FromShared are bytes sent to other nodes from the shared buffer, ToShared those
	// received into it: no rank copies them.
	FromShared, ToShared int
}

// TrafficOf returns the traffic of every node. graphs holds the graphs of all ranks,
// rank 0 first; node[r] is the node of rank r.
func TrafficOf(graphs []*Graph, node []int) ([]Traffic, error) {
	f, err := fit(graphs)
	if err != nil {
		return nil, err
	}
	if len(node) != len(graphs) {
		return nil, fmt.Errorf("%d graphs, but nodes of %d ranks", len(graphs), len(node))
	}
	nodes := 0
	for _, n := range node {
		nodes = max(nodes, n+1)
	}
	list := make([]Traffic, nodes)
	out, in := make([]map[connection]bool, nodes), make([]map[connection]bool, nodes)
	for n := range list {
		out[n], in[n] = map[connection]bool{}, map[connection]bool{}
	}
	for r, g := range graphs {
		t := &list[node[r]]
		var lies []Span // the rank's data in shared memory
		for i, op := range g.Ops {
			if op.Kind != Send {
				lies = subtractSpan(lies, op.Dst)
			}
			switch {
			case op.HandOver:
				if op.Kind == Send {
					t.HandOvers++
				}
			case op.Kind == Copy:
				if op.Dst.Buf == Shared {
					t.Writes++
					t.Written += op.Dst.Len
				}
				if op.Src.Buf == Shared {
					t.Reads++
					t.Read += op.Src.Len
				}
			case op.Kind == Recv && node[op.Peer] != node[r]:
				if op.Dst.Buf == Shared {
					t.ToShared += op.Dst.Len
				}
			case op.Kind == Send && node[op.Peer] != node[r]:
				to := &list[node[op.Peer]]
				t.Sent += op.Src.Len
				if op.Src.Buf == Shared {
					t.FromShared += op.Src.Len
				}
				to.Received += op.Src.Len
				way := connection{r, int(op.Peer), f.step[r][i]}
				out[node[r]][way], in[node[op.Peer]][way] = true, true
			case op.Kind == Send:
				if before := len(lies); !has(lies, op.Src) {
					lies = append(lies[:before:before], op.Src)
					t.Writes++
					t.Written += op.Src.Len
				}
			case op.Kind == Recv && node[op.Peer] == node[r]:
				t.Reads++
				t.Read += op.Dst.Len
			}
		}
	}
	for n := range list {
		list[n].Out, list[n].In = busiest(out[n]), busiest(in[n])
	}
	return list, nil
}

// connection is a connection with a message in a step.
type connection struct {
	from, to int
	step     int32
}

// busiest returns the largest number of connections of one step.
func busiest(ways map[connection]bool) (most int) {
	count := map[int32]int{}
	for way := range ways {
		count[way.step]++
		most = max(most, count[way.step])
	}
	return most
}

// subtractSpan returns the spans that an operation does not overwrite.
func subtractSpan(lies []Span, written Span) (rest []Span) {
	for _, s := range lies {
		if !overlap(s, written) {
			rest = append(rest, s)
		}
	}
	return rest
}

func has(lies []Span, s Span) bool {
	for _, have := range lies {
		if have == s {
			return true
		}
	}
	return false
}
