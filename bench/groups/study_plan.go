package groups

import (
	"fmt"
	"strings"

	"github.com/muster-mpi/muster/bench/results"
	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/prof"
)

// studies lists all studies. Problem sizes are small: a run takes about a second.
func studies() []*study {
	return []*study{speculationStudy(), reuseStudy(), channelStudy(), nodeStudy(), arrivalStudy(), eagerStudy(), messageStudy()}
}

// StudyPrefix begins the names of the tables of studies.
const StudyPrefix = "study-"

// Studies returns the names of the studies and what each shows.
func Studies() (names, titles []string) {
	for _, st := range studies() {
		names, titles = append(names, strings.TrimPrefix(st.name, StudyPrefix)), append(titles, st.title)
	}
	return names, titles
}

// selectStudies returns those whose tables are selected.
func selectStudies(only string) (list []*study) {
	for _, st := range studies() {
		if selects(only, st.name) {
			list = append(list, st)
		}
	}
	return list
}

// possibleStudies leaves out the studies that this machine cannot run.
func possibleStudies(list []*study, o Options) (left []*study, skipped []Skipped, err error) {
	for _, st := range list {
		if o.Before != "" {
			continue
		}
		changed, err := st.change(o.Study)
		if err != nil {
			return nil, nil, err
		}
		if st.hosts > 0 {
			if err := lab.Usable(); err != nil {
				skipped = append(skipped, Skipped{st.name, err})
				continue
			}
		}
		left = append(left, changed)
	}
	return left, skipped, nil
}

// Figures that several studies have.
var (
	runTime   = studyFigure{title: "run time (s)", value: func(_ *studyApp, r *appRun) float64 { return r.Seconds }}
	timeInMPI = studyFigure{title: "time in MPI (s)", value: func(_ *studyApp, r *appRun) float64 { return r.InMPI }}
	// processorTime is steadier than the run time where ranks share cores.
	processorTime = studyFigure{title: "processor time (s)", value: func(_ *studyApp, r *appRun) float64 { return r.CPU }}
	callsTime     = studyFigure{title: "time in the calls (s)", value: func(a *studyApp, r *appRun) float64 { return r.timeIn(a.calls) }}
)

// share returns a counter in per cent of the sum of several.
func share(r *appRun, part prof.Name, whole ...prof.Name) float64 {
	sum := 0.0
	for _, name := range whole {
		sum += r.Counters[name].Sum
	}
	return r.Counters[part].Sum / sum * 100 // NaN if there is none: not shown
}

// megabytes returns the sum of counters over all ranks.
func megabytes(r *appRun, names ...prof.Name) float64 {
	sum := 0.0
	for _, name := range names {
		sum += r.Counters[name].Sum
	}
	return sum / 1e6
}

// speculationStudy is T1 4.4.2, figure 4.17.
func speculationStudy() *study {
	return &study{
		name: "study-speculation", document: "T1", title: "Wait time of applications with speculative rendezvous (T1 4.4.2)", hosts: 4, rate: "100mbit",
		// The document ran classes A and B. Here messages of small classes are long.
		env:      []string{"MUSTER_EAGER_LIMIT=4096"},
		settings: []setting{{"never", []string{"MUSTER_SPECULATE=never"}}, {"auto", []string{"MUSTER_SPECULATE=auto"}}, {"always", []string{"MUSTER_SPECULATE=always"}}},
		figures: []studyFigure{
			{title: "wait time (s)", value: func(a *studyApp, r *appRun) float64 { return r.timeIn(a.calls) }},
			timeInMPI, processorTime,
			{title: "used offers (%)", alone: true, value: func(_ *studyApp, r *appRun) float64 { return share(r, prof.OffersUsed, prof.OffersMade) }},
		},
		apps: []studyApp{
			{name: "cg", class: "W", ranks: 4, calls: []string{"Sendrecv", "Allreduce"}, targets: []target{
				{"wait time", "auto", "+4 % (CG.B)", 1.04, 1.04}, {"wait time", "always", "+21 % (CG.B)", 1.21, 1.21}}},
			{name: "lu", class: "S", ranks: 4, calls: []string{"Wait", "Recv", "Send", "SendLayout"}, targets: []target{{"wait time", "auto", "−5 % (LU.A)", 0.95, 0.95}}},
			{name: "ft", class: "S", ranks: 4, calls: []string{"Alltoall"}},
			{name: "radix", class: "W", ranks: 4, calls: []string{"Send", "WaitAll"}, targets: []target{{"wait time", "auto", "−4 %", 0.96, 0.96}}},
			{name: "bt", class: "W", ranks: 4, calls: []string{"WaitAll"}, targets: []target{{"wait time", "auto", "−30 % (BT.A)", 0.70, 0.75}}},
			{name: "mg", class: "W", ranks: 4, calls: []string{"WaitAll"}},
		},
		claims: []results.Claim{
			{Source: "t1", Where: "fig. 4.17", Text: "speculation: wait time of CG, which never gains, at most 4 % longer with adaptation", Rows: "^cg .*wait time.*auto"},
			{Source: "t1", Where: "fig. 4.17", Text: "wait time 5 % shorter in LU, 4 % in radix sort", Rows: "^(lu|radix) .*wait time.*auto"},
			{Source: "t1", Where: "fig. 4.17", Text: "30 % shorter in BT; here at least 25 %, because its ranks share cores", Rows: "^bt .*wait time.*auto",
				Bound: "the cable needs 2.75 of the 3.9 s of the run, and late senders have 17 % of the ranks' time without speculation and 14 % with it (trace, figure 4.17): four ranks on two cores leave nothing to hide a transfer behind"},
		},
		note: `never: no speculation; auto: with adaptation, the default; always: without. Messages above 4 KB are sent by rendezvous. The wait time is that in
Sendrecv and Allreduce (CG), Wait, receives and sends (LU), Alltoall (FT), Send and WaitAll (RADIX), WaitAll (BT, MG): a blocking send of a long message waits for its receiver. BT computes the coefficients of a cell between a receive and its wait.`,
		differs: `CG, which loses there because fewer than 80 % of its offers are used, does not lose here, because almost all of them are: Sendrecv starts its receive before its send, and a cable of 100 Mbit/s leaves an offer time to arrive. MG
gains less than BT: it only packs faces between the start of a receive and its wait, so that less of a transfer can be hidden. LU receives from known ranks here and so it speculates; in the document it used MPI_ANY_SOURCE. The messages of FT belong to a collective, which starts its receives
when they are due, so that about half of the offers come too late.`,
	}
}

// reuseStudy is T1 5.5.2, figure 5.10 and table 5.4.
func reuseStudy() *study {
	at := func(name, class string, targets ...target) studyApp {
		return studyApp{name: name, class: class, ranks: 4, targets: targets}
	}
	return &study{
		name: "study-reuse", document: "T1", title: "Registration of frequently used buffers in applications (T1 5.5.2)",
		env:      []string{"MUSTER_NETWORK=iwarp", "MUSTER_NO_SHARED_MEMORY=true", "MUSTER_CHANNEL=rc", "MUSTER_STRICT=true"},
		settings: []setting{{"never", []string{"MUSTER_FREQUENT=never"}}, {"auto", []string{"MUSTER_FREQUENT=auto"}}, {"always", []string{"MUSTER_FREQUENT=always"}}},
		figures: []studyFigure{
			{title: "send time (s)", value: func(_ *studyApp, r *appRun) float64 { return r.kind("send") + r.kind("sendrecv") }},
			timeInMPI, runTime, processorTime,
			{title: "uses of a buffer", alone: true, value: func(_ *studyApp, r *appRun) float64 {
				return r.Counters[prof.BuffersDirect].Sum / r.Counters[prof.BuffersKnown].Sum // NaN if it counts none
			}},
		},
		apps: []studyApp{
			at("lu", "S", target{"send time", "always", "−18 % (LU.C)", 0.82, 0.82}, target{"processor time", "auto", "", 0, 1.01}),
			at("cg", "S", target{"time in MPI", "auto", "below +1 % (CG.C)", 1.01, 1.01}, target{"processor time", "auto", "", 0, 1.01}),
			at("mg", "W", target{"processor time", "auto", "", 0, 1.01}), at("radix", "W", target{"processor time", "auto", "", 0, 1.01}),
		},
		claims: []results.Claim{
			{Source: "t1", Where: "5.5.2", Text: "frequently used buffers: send time of LU −18 %", Rows: "^lu .*send time.*always"},
			{Source: "t1", Where: "5.5.2", Text: "CG, which gains nothing, less than 1 % slower; the same of our other applications", Rows: "auto over never"},
		},
		note: `Connections that check registration, on the loopback of this machine. never: short messages are copied into registered buffers. auto: sent from the program's buffer once it is used so often that registration
pays by costs measured on this device; the default. always: from the first use, so that uses of a buffer are counted. The send time is that of calls that send, Sendrecv included.`,
		differs: `the adapter is software, which copies the bytes of a message into a socket in any case, so that the copy that is saved is one of several. By the costs that it measures at the start, auto then registers buffers in few runs, and its rows show the noise of the machine. Our LU
sends rows of an array, each at an address of its own, so that a buffer is used twice, where that of NAS packs all of them into one. Uses below 128 bytes are not counted; those of CG are vectors of 5.6 KB here and numbers of 8 bytes in the document's table.`,
	}
}

// channelStudy is T1 6.6.2, figures 6.6 to 6.8 and table 6.1.
func channelStudy() *study {
	at := func(name, class string, ranks int, targets ...target) studyApp {
		targets = append(targets, target{figure: "memory with kernel", setting: "hybrid", must: 0.25, ratio: 0.25})
		return studyApp{name: name, class: class, ranks: ranks, targets: targets}
	}
	pages := func(ratio float64) target { // of UD by RC with 64 processes, class B
		return target{"communication memory", "ud", fmt.Sprintf("%.2f of all pages", ratio), ratio, 0}
	}
	channel := func(name string) setting { return setting{name, []string{"MUSTER_CHANNEL=" + name}} }
	return &study{
		name: "study-channel-memory", document: "T1", title: "Time and memory of applications by channel (T1 6.6.2, table 6.1)", hosts: 4, rate: "1gbit",
		env:      []string{"MUSTER_NETWORK=iwarp", "MUSTER_NO_SHARED_MEMORY=true"},
		settings: []setting{channel("rc"), channel("ud"), channel("hybrid"), {"hybrid-4", []string{"MUSTER_CHANNEL=hybrid", "MUSTER_MAX_CONNECTIONS=4"}}},
		figures: []studyFigure{
			{title: "communication memory (MB)", value: func(_ *studyApp, r *appRun) float64 { return megabytes(r, prof.MemoryTotal) }},
			{title: "memory with kernel (MB)", value: func(_ *studyApp, r *appRun) float64 { return megabytes(r, prof.MemoryTotal, prof.MemoryKernel) }},
			timeInMPI, runTime, processorTime,
		},
		apps: []studyApp{
			at("cg", "S", 32, pages(0.951)), at("mg", "S", 32, pages(0.939)), at("lu", "S", 16, pages(0.958)),
			at("radix", "S", 32, pages(0.693), target{"run time", "ud", "up to −45 %", 0.55, 0}),
		},
		claims: []results.Claim{
			{Source: "t1", Where: "table 6.1", Text: "datagrams: radix sort needs 31 % less memory with 64 processes (here: for communication)", Rows: "^radix .*communication memory.*ud over rc", Op: results.AtMost, Limit: 0.693},
			{Source: "t1", Where: "6.6.2", Text: "radix sort up to 45 % faster", Rows: "^radix .*run time.*ud over rc", Op: results.AtMost, Limit: 0.55},
			{Text: "memory of the hybrid channel with that of the kernel at most a quarter of connections", Rows: "memory with kernel.*hybrid over rc"},
		},
		note: `rc: a connection to each peer. ud: unreliable datagrams with reliability above them. hybrid: datagrams, and connections to up to 16 busy peers; the default. hybrid-4: to up to 4. All ranks use the network, also those of one host. Memory is
that of all ranks together; that of the kernel is what the buffers of sockets may hold.`,
		differs: `the document counts all pages of the job, of which communication is a part, and no memory of the kernel. The buffers of the one datagram socket of a rank may hold 4.7 MB, whatever the number of ranks, and that is nearly all that hybrid has in CG and MG. A rank with rc has such a socket too, over which it opens connections.
A rank of LU has at most four neighbors, all of them busy, and hybrid opens a connection to each, so that it has what rc has. The document's connections have 800 KB of receive buffers each; ours share theirs. A rank of radix sort talks to 31 others, and hybrid opens 16 connections. Run times are those of 32 ranks on the cores of one machine.`,
	}
}

// allgatherBy and alltoallBy select an algorithm.
func allgatherBy(name string) setting {
	return setting{name, []string{"MUSTER_COLLECTIVE=allgather=" + name}}
}

func alltoallBy(name string) setting {
	return setting{name, []string{"MUSTER_COLLECTIVE=alltoall=" + name}}
}

// byDefault is what the cost model chooses.
var byDefault = setting{name: "default"}

// nodeStudy is T2 4.4.3, table 4.1.
func nodeStudy() *study {
	return &study{
		name: "study-node-collectives", document: "T2", title: "Node-aware collectives in applications (T2 table 4.1)", hosts: 4, rate: "100mbit",
		figures: []studyFigure{callsTime, timeInMPI, runTime, processorTime},
		apps: []studyApp{
			{name: "radix", class: "S", ranks: 16, calls: []string{"Allgather"}, settings: []setting{allgatherBy("bruck"), allgatherBy("node-bruck"), byDefault}, targets: []target{
				{"time in the calls", "node-bruck", "", 0, 1}, {"time in MPI", "node-bruck", "×1.47", 0.68, 0.68}, {"run time", "node-bruck", "×1.13", 0.885, 0.885}, {"time in the calls", "default", "", 0, 1}}},
			{name: "nbody", class: "S", ranks: 16, calls: []string{"Allgather"}, settings: []setting{allgatherBy("gather-bcast"), allgatherBy("node-gather-bcast"), byDefault}, targets: []target{
				{"time in the calls", "node-gather-bcast", "", 0, 1}, {"time in MPI", "node-gather-bcast", "×1.09", 0.917, 0.917}, {"run time", "node-gather-bcast", "×1.01", 0.99, 0.99}, {"time in the calls", "default", "", 0, 1}}},
			{name: "ft", class: "S", ranks: 16, calls: []string{"Alltoall"}, settings: []setting{alltoallBy("pairwise"), alltoallBy("node-columns"), byDefault}, targets: []target{
				{"time in the calls", "node-columns", "", 0, 1}, {"time in the calls", "default", "", 0, 1}}},
		},
		claims: []results.Claim{
			{Source: "t2", Where: "table 4.1", Text: "node-aware allgather: communication ×1.47 in radix sort, ×1.09 in N-body", Rows: "^(radix|nbody) .*time in MPI.*, node-"},
			{Source: "t2", Where: "table 4.1", Text: "run time ×1.13 and ×1.01", Rows: "^(radix|nbody) .*run time.*, node-"},
			{Text: "the default choice is not slower in radix sort, N-body and FT", Rows: "time in the calls.*default"},
		},
		note: `Four ranks on each host. The reference is the algorithm without regard to hosts; default is what the cost model chooses. The calls are Allgather of 4 KB (RADIX) and of 64 bytes (N-BODY), and Alltoall (FT).`,
		differs: `the document's hosts have four processors each and two rails. Here 16 ranks share the cores of one machine, so that the time after a rank was woken is part of every step; the
cables are slow, so that the bytes that leave a host still count.`,
	}
}

// arrivalStudy is T2 6.3.1 and 6.5.3, tables 6.1 to 6.3.
func arrivalStudy() *study {
	const notSlower = 1.02
	// T2's Direct sends to one rank at a time, and waits until it has arrived; our direct starts
	// all messages at once.
	waits := func(s setting) setting { return setting{s.name, append(s.env, "MUSTER_EAGER_LIMIT=4096")} }
	ft := func(reference, compared setting, document string, ratio float64) studyApp {
		return studyApp{name: "ft", class: "S", ranks: 16, calls: []string{"Alltoall"}, settings: []setting{reference, compared}, targets: []target{
			{"time in the calls", "pap_direct", document, ratio, notSlower},
			{figure: "average imbalance", document: "597 (FT.B)"}, {figure: "worst imbalance", document: "1812 (FT.B)"}}}
	}
	is := func(reference setting) studyApp {
		return studyApp{name: "is", class: "W", ranks: 16, calls: []string{"Alltoallv"}, settings: []setting{reference, alltoallBy("pap_direct")}, targets: []target{
			{"time in the calls", "pap_direct", "", 0, notSlower}}}
	}
	gather := func(name, class, document string, ratio float64) studyApp {
		return studyApp{name: name, class: class, ranks: 16, calls: []string{"Allgather"}, settings: []setting{allgatherBy("recursive-doubling"), allgatherBy("pap_shm_direct")}, targets: []target{
			{"time in the calls", "pap_shm_direct", document, ratio, notSlower}}}
	}
	return &study{
		name: "study-arrival", document: "T2", title: "Arrival-aware collectives in applications (T2 tables 6.1 to 6.3)", hosts: 4, rate: "100mbit", arrivals: true,
		figures: []studyFigure{callsTime, runTime, processorTime, {title: "retransmitted datagrams", value: func(_ *studyApp, r *appRun) float64 { return r.Counters["datagrams.retransmitted"].Sum }}},
		apps: []studyApp{
			ft(alltoallBy("pairwise"), alltoallBy("pap_direct"), "×1.14 (FT.B), ×1.17 (FT.C)", 0.877), ft(waits(alltoallBy("direct:ports=1")), waits(alltoallBy("pap_direct")), "×1.42 (FT.B), ×1.63 (FT.C)", 0.704),
			is(alltoallBy("pairwise")), is(alltoallBy("direct")),
			gather("radix", "S", "×1.62", 0.617), gather("nbody", "S", "×1.52", 0.658),
		},
		claims: []results.Claim{
			{Source: "t2", Where: "table 6.2", Text: "arrival-aware alltoall in FT: ×1.14 over MVAPICH's", Rows: "^ft .*time in the calls.*over pairwise", Op: results.AtMost, Limit: 0.877},
			{Source: "t2", Where: "table 6.2", Text: "×1.42 over Direct, and ×1.63 in class C", Rows: "^ft .*time in the calls.*over direct", Op: results.AtMost, Limit: 0.704},
			{Source: "t2", Where: "table 6.3", Text: "arrival-aware allgather ×1.62 in radix sort", Rows: "^radix .*time in the calls", Op: results.AtMost, Limit: 0.617},
			{Source: "t2", Where: "table 6.3", Text: "×1.52 in N-body", Rows: "^nbody .*time in the calls", Op: results.AtMost, Limit: 0.658},
			{Text: "arrival-aware collectives never slower in FT, IS, radix sort and N-body (within 2 %)", Rows: "time in the calls"},
		},
		note: `Four ranks on each host. The references are algorithms of the document's MVAPICH, and Direct. The imbalance is that of a run with --profile arrivals and the reference: how far apart ranks enter the call,
in times of a message of its length, on average and from the first to the last (T2 equations 6.2 and 6.3).`,
		differs: `the cables carry the blocks of FT in 0.5 s, of which pairwise exchange reaches 0.6 s: ranks arrive within less time than the exchange takes, and serving the early ones first gains little. In the document ranks are hundreds of messages apart.
Direct sends one message at a time, by rendezvous above 4 KB, as in the document. The blocks of FT are 16 KB here and above 2 MB there. The imbalance of N-body in times of a message is that of ranks that wait for a core: its messages are short.`,
	}
}

// eagerStudy is P3 sections 4 and 5.
func eagerStudy() *study {
	eager := func(name, value string) setting { return setting{name, []string{"MUSTER_EAGER=" + value}} }
	const memory = "receive buffers and rings (MB)"
	st := &study{
		name: "study-eager-channels", document: "P3", title: "Time and memory of applications by eager channel and number of ranks (P3)",
		env:      []string{"MUSTER_NETWORK=iwarp", "MUSTER_NO_SHARED_MEMORY=true", "MUSTER_CHANNEL=rc"},
		settings: []setting{eager("ARDMA-SR", "few"), eager("ARDMA-SRQ", "rings"), eager("SRQ", "srq")},
		figures: []studyFigure{
			{title: memory, value: func(_ *studyApp, r *appRun) float64 {
				return r.Counters["memory.receive"].Max/1e6 + r.Counters["memory.rings"].Max/1e6
			}},
			{title: "communication memory (MB)", value: func(_ *studyApp, r *appRun) float64 { return r.Counters[prof.MemoryTotal].Max / 1e6 }},
			runTime, processorTime,
		},
		overRanks: memory,
		claims: []results.Claim{
			{Source: "p3", Where: "5", Text: "eager channels: receive buffers a tenth in radix sort on 64 ranks", Rows: "^radix S, 64 .*receive buffers"},
			{Source: "p3", Where: "5", Text: "5–10 MB of communication memory for each process (there constant); here at most that up to 32 ranks, and growing with the connections", Rows: " (4|8|16|32) ranks, communication memory.*SRQ over", Column: "compared", Op: results.AtMost, Limit: 10},
			{Source: "p3", Where: "5", Text: "the same speed, on up to 8 ranks", Rows: " [48] ranks.*run time", Op: results.AtMost, Limit: 1.05},
		},
		note: `Of the rank that has most, without memory of the kernel, on the loopback of this machine. ARDMA-SR: a few receive buffers for each connection and rings for busy peers. ARDMA-SRQ: receive buffers that all peers
share, and rings. SRQ: shared receive buffers alone. The processor time is that of all ranks.`,
		differs: `the document reports 5 to 10 MB for each process whatever their number, with up to 81 processes. Ours grows with the number of connections, of which radix sort has one to each rank: the state and the send buffers of a connection belong to the device, which is software. 32 and 64 ranks on one machine share its cores, so that run times show the processor time of each channel, not its latency.`,
	}
	add := func(name string, numbers ...int) {
		for _, ranks := range numbers {
			a := studyApp{name: name, class: "S", ranks: ranks}
			for _, channel := range []string{"ARDMA-SRQ", "SRQ"} {
				a.targets = append(a.targets, target{"run time", channel, "same", 1, 0})
				if ranks == 64 {
					a.targets = append(a.targets, target{"receive buffers", channel, "a tenth", 0.1, 0.1})
				}
			}
			st.apps = append(st.apps, a)
		}
	}
	add("radix", 4, 8, 16, 32, 64)
	add("cg", 4, 8, 16, 32)
	return st
}
