package groups

// Long messages while the application computes: overlap, progress and exchange. The loops
// are those of loops/rendezvous.c and of `muster bench`.

import (
	"fmt"

	"github.com/muster-mpi/muster/bench/results"
)

// overlapSide is a timing scenario.
type overlapSide struct{ metric, title string }

var overlapSides = []overlapSide{
	{"recv/receiver-first", "receive, receiver first"},
	{"recv/sender-first", "receive, sender first"},
	{"send/receiver-first", "send, receiver first"},
	{"send/sender-first", "send, sender first"},
}

var overlapSizes = []struct {
	title string
	bytes int64
}{{"64 KB", 64 << 10}, {"256 KB", 256 << 10}, {"1 MB", 1 << 20}, {"4 MB", 4 << 20}}

// hiddenNote defines the figures of overlap.
const hiddenNote = "Where a core is idle, a thread of the scheduling class for idle time keeps it from halting (internal/lab, KeepAwake), for all libraries alike. The computation takes 0.9 of the time of the transfer; the figure is the share of the computation that does not lengthen the transfer, the median of at least 15 samples. growing: P2's growing computation, until the transfer is 10 % longer (P2 section 6), as a share of the transfer."

// speculationPlan is T1 4.4 and P2.
func speculationPlan() []*group {
	both := []contender{openMPI, mpich}
	const sizes = "65536,262144,1048576,4194304"
	return []*group{
		{
			name: "overlap", title: "Share of a transfer that a computation hides, two ranks, shared memory", ranks: 2, peers: both,
			rounds: 2, beside: true, protocols: true, protocol: "spec", note: hiddenNote,
			args: "overlap -s " + sizes, ours: "overlap --sizes " + sizes,
			quantity: percentMore, lines: overlapLines(),
			claims: []results.Claim{
				{Source: "t1", Where: "4.4.1", Text: "receive overlap above 80 % in both timing scenarios, between two hosts, 1 MB, default protocol", Tables: "lab-overlap", Rows: "^receive.*first$", Op: results.AtLeast, Limit: 80},
				{Source: "t1", Where: "4.4.1", Text: "receiver first: overlap above 92 %", Tables: "lab-overlap", Rows: "^receive, receiver first$", Op: results.AtLeast, Limit: 92},
				{Source: "t1", Where: "4.4.1", Text: "receiver first: send overlap 2–14 % lower; points above the better peer", Tables: "lab-overlap", Rows: "^send, receiver first$", Op: results.AtLeast, Limit: -14, Gap: true},
				{Source: "t1", Where: "4.4.1", Text: "sender first: send overlap unchanged; points above the better peer", Tables: "lab-overlap", Rows: "^send, sender first$", Op: results.AtLeast, Limit: 0, Gap: true},
			},
		},
		{
			name: "overlap-default", title: "Share of a transfer that a computation hides, default protocol, two ranks, shared memory", ranks: 2, rounds: 2,
			ours: "overlap --sizes " + sizes, quantity: percentMore, lines: unboundLines(overlapLines()),
		},
		{
			name: "progress", title: "Share of a transfer that is done during a delay, two ranks, shared memory", ranks: 2, peers: both,
			beside: true, protocols: true, protocol: "spec", note: "The delay is five times as long as the transfer and makes no call (P2 section 7). The first figures follow from the growth of the transfer time; for the others the receiver reads its buffer: whether the last byte arrives before the delay is over, and which pages arrive during the delay.",
			args: "progress -s " + sizes, ours: "progress --sizes " + sizes,
			quantity: percentMore, lines: progressLines(),
		},
		onTwoHosts(&group{
			name: "lab-progress", title: "Share of a transfer of 1 MB that is done during a delay, two hosts, 1 Gbit/s", beside: true, protocols: true,
			args: "progress -s 1048576 -i 10", ours: "progress --sizes 1048576 --iterations 10",
			quantity: percentMore, lines: receiveLines(98),
			claims: []results.Claim{{Source: "t1", Where: "4.4.1", Text: "a receive progresses without calls in both scenarios, between two hosts: its time does not grow with the delay (here: at least 98 % done)", Rows: "^receive.*first$", Op: results.AtLeast, Limit: 98}},
		}),
		speculationOverhead(), exchangeWithoutSpeculation(),
	}
}

// exchangePlan compares the models of exchange with other libraries.
func exchangePlan() []*group {
	both := []contender{openMPI, mpich}
	return []*group{{
		name: "exchange", title: "Iteration that produces, exchanges 128 KB and consumes, two ranks, shared memory", ranks: 2, peers: both,
		protocols: true, protocol: "spec", note: "Ratios are communication to computation, with 25 µs assumed for the communication, so that all libraries compute for the same time (T1 figure 4.15).",
		args: "exchange -s 131072 -c 25 -r 0.2,0.5,0.8,1,2", ours: "exchange --sizes 131072 --communication 25us --ratios 0.2,0.5,0.8,1,2",
		quantity: micros, lines: exchangeLines(),
		claims: []results.Claim{{Text: "exchange model 1 and 2"}},
	},
	}
}

func unboundLines(lines []line) []line {
	for i := range lines {
		lines[i].bound = unbound
	}
	return lines
}

func overlapLines() []line {
	var lines []line
	for _, side := range overlapSides {
		for _, size := range overlapSizes {
			l := line{title: side.title + ", " + size.title, size: size.bytes, metric: side.metric, bound: unbound}
			if side.metric == "recv/receiver-first" && size.bytes >= 256<<10 {
				l.bound = 92
			}
			lines = append(lines, l)
		}
	}
	for _, side := range overlapSides {
		lines = append(lines, line{title: side.title + ", 1 MB, growing", size: 1 << 20, metric: side.metric + "/growing", bound: unbound})
	}
	return lines
}

func progressLines() []line {
	var lines []line
	for _, side := range overlapSides {
		for _, size := range overlapSizes {
			l := line{title: side.title + ", " + size.title, size: size.bytes, metric: side.metric, bound: unbound}
			if side.metric == "recv/receiver-first" {
				l.bound = 98
			}
			lines = append(lines, l)
		}
	}
	for _, look := range []overlapSide{{"/last-byte", "last byte present"}, {"/pages", "pages that arrived"}} {
		for _, side := range overlapSides[:2] { // the receive side
			for _, size := range overlapSizes {
				l := line{title: side.title + ", " + look.title + ", " + size.title, size: size.bytes, metric: side.metric + look.metric, bound: unbound}
				if side.metric == "recv/receiver-first" {
					l.bound = 98
				}
				lines = append(lines, l)
			}
		}
	}
	return lines
}

func exchangeLines() []line {
	var lines []line
	for model := 1; model <= 2; model++ {
		for _, ratio := range []string{"0.2", "0.5", "0.8", "1", "2"} {
			lines = append(lines, line{title: fmt.Sprintf("model %d, ratio %s", model, ratio), metric: fmt.Sprintf("model-%d/%s", model, ratio), bound: 1})
		}
	}
	return lines
}
