package groups

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/bench/results"
)

// contender is a program that is measured.
type contender int

const (
	openMPI contender = iota
	mpich
	bare    // libfabric without a layer above it
	bareUDP // UDP with segmentation offload, without a layer above it
	oneRail // ours on the first of several rails
	plain   // ours without encryption
	gcm     // the cipher by itself, on one core
	asMPICH // ours, with a program built for MPICH
	before  // an earlier build of muster (-before)
	muster
	contenderCount
)

var contenderNames = [contenderCount]string{"Open MPI", "MPICH", "libfabric bare", "UDP bare", "Muster, one rail", "Muster, plain", "AES-128-GCM", "Muster, MPICH's ABI", "Muster before", "Muster"}

func (c contender) String() string { return contenderNames[c] }

// medium is the transport of a group.
type medium int

const (
	sharedMemory medium = iota
	// network is TCP on this machine's loopback. Ours uses libfabric's provider net, or
	// software iWARP if a channel is named.
	network
	// hosts is the network between hosts of a lab: network namespaces, see
	// internal/lab.
	hosts
)

// transport is what carries the messages of a group.
type transport struct {
	over  medium
	hosts int // number of hosts, if over is hosts
	rails int // cables of each host; 0: one
	// rate of a cable; "": unlimited. queue is that of a switch port in bytes; 0: the lab's
	// default. loss is the probability that a packet is lost.
	rate  string
	queue int64
	loss  float64
	// channel of software iWARP, instead of libfabric.
	channel string
	// copies: the kernel does not copy between processes, as in a container that does not
	// permit process_vm_readv. Messages are copied in and out of shared memory.
	copies bool
	// encrypt: ours encrypts messages.
	encrypt bool
}

// fourHosts have two cables each, with a rate.
func fourHosts(rate string) transport {
	return transport{over: hosts, hosts: 4, rails: 2, rate: rate, channel: "hybrid"}
}

// quantity is what a group measures. metric selects the figure of a run and unit is its unit. It
// is shown multiplied by scale, in the unit shown. A line may have its own metric.
type quantity struct {
	metric string
	unit   string
	scale  float64
	shown  string
	// wallClock: the figure is the time of the run.
	wallClock    bool
	largerBetter bool
}

var (
	latencyMicros = quantity{metric: "latency", unit: "us", scale: 1, shown: "µs"}
	bandwidthMB   = quantity{metric: "bandwidth", unit: "MB/s", scale: 1, shown: "MB/s", largerBetter: true}
	bandwidthGB   = quantity{metric: "bandwidth", unit: "MB/s", scale: 1e-3, shown: "GB/s", largerBetter: true}
	messageRate   = quantity{metric: "rate", unit: "msg/s", scale: 1e-6, shown: "M/s", largerBetter: true}
	micros        = quantity{unit: "us", scale: 1, shown: "µs"}
	percent       = quantity{unit: "%", scale: 1, shown: "%"}
	percentMore   = quantity{unit: "%", scale: 1, shown: "%", largerBetter: true}
)

// group is a table: the figures that one run of each contender yields.
type group struct {
	name  string // or family-name: -only accepts both
	title string
	note  string // conditions of the measurement
	ranks int
	transport
	quantity
	lines []line
	chart bool // draw the peers' times as multiples of ours
	// claims are those that the table shows. A claim without tables is about this one; one
	// about several tables is a claim of the first.
	claims []results.Claim

	// peers are the contenders of which the better is compared with ours. None: our figure is
	// compared with the bound.
	peers []contender
	// beside: the peers are shown, and our figure is compared with the bound.
	beside bool
	// added: the work of the peers is done one after the other by one core, and ours is
	// compared with that.
	added bool

	args string // for the loops in C
	ours string // the same for `muster bench`; {now} is the time
	// protocols: it is about long messages, and -protocol selects ours; protocol is the
	// one without the flag, "" if as configured.
	protocols bool
	protocol  string
	// async: the peers run with their background progress, as ours does by default.
	async bool
	// direct: ours is started as "muster bench" itself, which starts its jobs.
	direct bool
	// front: ours runs the loops in C too, the same binary as MPICH ("--mpich") or Open MPI
	// ("--openmpi"), through the C interface.
	front string
	// simulated: ours is the command line of "muster sim". No ranks run.
	simulated bool
	// env has settings of ours.
	env []string

	// limit of a run, if it is longer than that of the others.
	limit time.Duration
	// rounds is the number of rounds if fewer than -rounds are enough; 0: as -rounds.
	rounds int
	// alone: its runs are not shared with other groups, so that the contenders alternate.
	alone bool
	// onRequest: measured only if -only names it.
	onRequest bool
}

// loop sets the command lines of both, and a line for each size: a loop of messages, with a number
// of iterations unless it is 0.
func (g group) loop(name string, iterations int, bounds []float64, sizes ...byteSize) *group {
	g.args, g.ours = name+" -s "+sizeList(sizes), name+" --sizes "+sizeList(sizes)
	if iterations > 0 {
		g.args += fmt.Sprintf(" -i %d", iterations)
		g.ours += fmt.Sprintf(" --iterations %d", iterations)
	}
	g.lines = sizeLines(bounds, sizes...)
	return &g
}

// line is one row of a table. bound limits the ratio to the better peer, or the figure if
// there is no peer: at most, or at least if larger is better.
type line struct {
	title string
	size  int64 // 0: any
	bound float64
	// metric, if it is not that of the group.
	metric string
	// protocol selects records of a protocol, algorithm or channel, device those of a
	// device, and against those that are relative to another one; "": records without.
	protocol, device, against string
	connections               int // of records of several connections; 0: any
	// over makes the figure a ratio: protocol over this one, in the same run.
	over string
	// peers are those that the line is compared with, if they are not all of the group.
	peers []contender
}

// unbound is the bound of a line without a target.
const unbound = 0

// compared reports whether ours is judged by its ratio to a peer.
func (g *group) compared() bool { return len(g.peers) > 0 && !g.beside }

// section is a heading of the page of results. Its claims are those of its groups, in order.
type section struct {
	title  string
	note   string // what a reader must know to compare; "": nothing
	groups []family
}

// family is a list of groups whose tables are on one generated page.
type family struct {
	page   page
	groups []*group
}

// page is a generated page of tables.
type page int

const (
	rendezvousPage page = iota
	datagramPage
	awarePage
	sharedPage
	collectivePage
	loopbackPage
	hostsPage
	hostsCollectivePage
	jobPage
	studyPage
	layerPage
	simulatedPage
)

// pages has the name and the title of each page.
var pages = [...]results.TablePage{
	rendezvousPage:      {Name: "rendezvous", Title: "Long messages: overlap, speculation, reuse of buffers"},
	datagramPage:        {Name: "datagrams", Title: "Datagrams and the eager channels: latency, memory"},
	awarePage:           {Name: "aware", Title: "Collectives that are aware of ports, hosts and arrivals"},
	sharedPage:          {Name: "shared-memory", Title: "Messages in shared memory: latency, bandwidth, rate, one-sided transfers"},
	collectivePage:      {Name: "collectives", Title: "Collectives on one host"},
	loopbackPage:        {Name: "loopback", Title: "Messages over the loopback: libfabric, TCP, software iWARP"},
	hostsPage:           {Name: "hosts", Title: "Messages between hosts: latency, bandwidth, encryption, processor time"},
	hostsCollectivePage: {Name: "hosts-collectives", Title: "Collectives between hosts"},
	jobPage:             {Name: "jobs", Title: "Jobs: start, memory, processor time of a rank that waits"},
	studyPage:           {Name: "applications", Title: "Applications"},
	layerPage:           {Name: "layers", Title: "Layers: devices and MPI over them, connections, registration, reuse of buffers"},
	simulatedPage:       {Name: "simulated", Title: "Simulated collectives"},
}

// sections lists all groups.
func sections() []section {
	return []section{
		{title: "Against Open MPI and MPICH: our own targets", groups: []family{
			{sharedPage, sharedMemoryPlan()}, {collectivePage, collectivePlan()}, {sharedPage, append(windowPlan(), exchangePlan()...)},
			{jobPage, jobPlan()}, {loopbackPage, networkPlan()}, {hostsPage, slices.Concat(labPlan(), cablePlan(), encryptPlan(), railPlan())},
			{hostsCollectivePage, append(stallPlan(), labCollectivePlan()...)}, {jobPage, startPlan()}, {hostsCollectivePage, choicePlan()},
		}},
		{title: "T1: speculative rendezvous", groups: []family{{rendezvousPage, speculationPlan()}}, note: `Judged between hosts: in shared memory a core must copy where T1's adapter did, so that those figures are information (table overlap).
Not judged either: CG's loop without adaptation, a mode that nobody uses (T1: 21 % longer, here up to 86 %), and exchange model 2, whose reference already makes the call in Irecv that T1 added.`},
		{title: "T1 and P1: frequently used buffers", groups: []family{{rendezvousPage, []*group{bufferReuse(), reuseUses(), collectiveReuse()}}, {layerPage, layerPlan()}}},
		{title: "T1: datagram iWARP", groups: []family{{datagramPage, []*group{datagramLatency(), datagramVerbs(), datagramBandwidth(), channelMemory()}}}},
		{title: "P3: memory of the eager protocol", groups: []family{{datagramPage, eagerPlan()}}},
		{title: "T2: collectives", groups: []family{{awarePage, append(t2Plan(), skewPlan()...)}, {simulatedPage, simulatedPlan()}}, note: `T2 used clusters of 4 nodes with 4 processors each: with two rails against the vendor's library in chapters 3 and 4, with one
port against MVAPICH in chapters 5 and 6. Here four hosts run 16 ranks on two cores. The reference is our plain algorithm, or Open MPI. Our own Direct starts all messages at once and never waits for
a late rank, so that awareness is judged against T2's Direct, with one message at a time.`},
	}
}

// plan lists the groups of all sections.
func plan() (list []*group) {
	for _, s := range sections() {
		for _, f := range s.groups {
			list = append(list, f.groups...)
		}
	}
	return list
}

// Pages lists the generated pages of tables.
func Pages() []results.TablePage {
	list := slices.Clone(pages[:])
	for _, s := range sections() {
		for _, f := range s.groups {
			list[f.page].Tables = append(list[f.page].Tables, tableNames(f.groups, nil)...)
		}
	}
	list[studyPage].Tables = tableNames(nil, studies())
	return list
}

// Sections lists all claims: those of groups and those of studies.
func Sections() (list []results.Section) {
	var tables []string
	add := func(s *results.Section, claims []results.Claim, table, column string) {
		for _, c := range claims {
			if c.Reason == "" {
				c.Tables, c.Column = cmp.Or(c.Tables, table), cmp.Or(c.Column, column)
				for _, name := range tables {
					if results.Match(c.Tables, name) {
						c.Count++
					}
				}
			}
			s.Claims = append(s.Claims, c)
		}
	}
	for _, g := range plan() {
		if !g.onRequest {
			tables = append(tables, g.name)
		}
	}
	tables = append(tables, tableNames(nil, studies())...)
	for _, s := range sections() {
		one := results.Section{Title: s.title, Note: s.note}
		for _, f := range s.groups {
			for _, g := range f.groups {
				column := muster.String()
				if g.compared() {
					column = ratioColumn
				}
				add(&one, g.claims, g.name, column)
			}
		}
		list = append(list, one)
	}
	for _, st := range studies() {
		if len(st.claims) == 0 {
			continue
		}
		last := &list[len(list)-1]
		if last.Document != st.document {
			list = append(list, results.Section{Title: st.document + ": claims about applications", Document: st.document, Note: `Studies: applications with a technique and without it, in alternating rounds. × is the time or memory with it divided by that without. Each table says
where the result differs from the document, and why. The columns are those of the page of results.`})
			last = &list[len(list)-1]
		}
		add(last, st.claims, st.name, ratioColumn)
	}
	return list
}

// sizeLines returns a line for each size with its bound.
func sizeLines(bounds []float64, sizes ...byteSize) []line {
	var lines []line
	for i, s := range sizes {
		lines = append(lines, line{title: s.title, size: s.bytes, bound: bounds[i]})
	}
	return lines
}

// unitFactors converts units that programs print to the unit of a group.
var unitFactors = map[string]map[string]float64{
	"us":     {"us": 1, "µs": 1, "ns": 1e-3, "ms": 1e3, "s": 1e6},
	"ns":     {"ns": 1},
	"uses":   {"uses": 1},
	"MB/s":   {"MB/s": 1, "GB/s": 1e3},
	"msg/s":  {"msg/s": 1},
	"op/s":   {"op/s": 1},
	"s":      {"s": 1, "ms": 1e-3, "us": 1e-6},
	"cards":  {"cards": 1},
	"rounds": {"rounds": 1, "events": 1},
	"KiB":    {"KiB": 1, "MiB": 1024, "B": 1.0 / 1024, "MB": 1e6 / 1024},
	"%":      {"%": 1, "ppm": 1e-4},
	"ratio":  {"ratio": 1, "x": 1},
}
