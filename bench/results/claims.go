package results

// Claim compares figures of generated tables with what a source reached, or with a
// target of our own.
type Claim struct {
	Source string // anchor in docs/references.md; "": a target of our own
	Where  string // section of the source
	Text   string
	Tables string // names of tables, separated by commas; * matches any text
	// Count is the number of tables, if a name has a *. If fewer exist, the claim is not
	// measured.
	Count  int
	Rows   string // regular expression for the labels of rows; "": all
	Column string // heading of the column, without its unit
	// Op and Limit are the threshold. If Op is "", each row has one in the column
	// "must be", and rows without one are left out.
	Op    string
	Limit float64
	// Best judges the best row, for claims such as "up to 14 %". The worst is shown too.
	Best bool
	// Reason says why a claim cannot be measured on one machine with this repository. Such a
	// claim has no tables.
	Reason string
	// Gap judges the figure minus the best figure of the columns for peers.
	Gap bool
}

// Values of Op.
const (
	AtMost  = "≤"
	AtLeast = "≥"
)

// Section is a heading of the page and its claims.
type Section struct {
	Title  string
	Note   string // what a reader must know to compare; "": nothing
	Claims []Claim
	// Page has the claims: Page if "", or StudiesPage.
	Page string
}

// Column headings that many claims name.
const muster, ratio = "Muster", "ratio"

// Sections lists all claims.
func Sections() []Section { return append(sections(), studySection()) }

// sections lists the claims of Page.
func sections() []Section {
	return []Section{
		{Title: "Speculative rendezvous", Note: "Overlap is measured with `--protocol spec`, the technique of T1, unless a row says otherwise.", Claims: []Claim{
			{Source: "t1", Where: "4.4.1", Text: "receive overlap above 80 % in both timing scenarios, shared memory", Tables: "overlap", Rows: "^receive.*B$", Column: muster, Op: AtLeast, Limit: 80},
			{Source: "t1", Where: "4.4.1", Text: "the same with our default protocol, which adapts", Tables: "overlap-default", Rows: "^receive.*B$", Column: muster, Op: AtLeast, Limit: 80},
			{Source: "t1", Where: "4.4.1", Text: "the same between two hosts, 1 MB, default protocol", Tables: "lab-overlap", Rows: "^receive.*first$", Column: muster, Op: AtLeast, Limit: 80},
			{Source: "t1", Where: "4.4.1", Text: "receiver first: overlap above 92 %, shared memory", Tables: "overlap", Rows: "^receive, receiver first.*B$", Column: muster, Op: AtLeast, Limit: 92},
			{Source: "t1", Where: "4.4.1", Text: "receiver first: send overlap 2–14 % lower; points below the better peer, shared memory", Tables: "overlap", Rows: "^send, receiver first.*B$", Column: muster, Op: AtLeast, Limit: -14, Gap: true},
			{Source: "t1", Where: "4.4.1", Text: "sender first: send overlap unchanged; points below the better peer, shared memory", Tables: "overlap", Rows: "^send, sender first.*B$", Column: muster, Op: AtLeast, Limit: 0, Gap: true},
			{Source: "p2", Where: "7", Text: "receive progresses without calls in both scenarios (98 %), shared memory", Tables: "progress", Rows: "^receive, (receiver|sender) first, [0-9]", Column: muster, Op: AtLeast, Limit: 98},
			{Source: "p2", Where: "7", Text: "the same between two hosts", Tables: "lab-progress", Rows: "^receive", Column: muster, Op: AtLeast, Limit: 98},
			{Source: "t1", Where: "4.4.3", Text: "unused RTRs cost below 1 % (eager)", Tables: "rndv-overhead", Rows: "^crossing, (1|8) KB, auto", Column: muster, Op: AtMost, Limit: 1},
			{Source: "t1", Where: "4.4.3", Text: "unused RTRs cost below 3 % (rendezvous, without adaptation)", Tables: "rndv-overhead", Rows: "^crossing, (64|256|1) [KM]B, spec", Column: muster, Op: AtMost, Limit: 3},
			{Source: "t1", Where: "4.4.3", Text: "extra data below 0.04 %; here all control data", Tables: "rndv-overhead", Rows: "^control", Column: muster, Op: AtMost, Limit: 0.04},
			{Source: "t1", Where: "4.4.2", Text: "CG, which never gains, loses 4 % with adaptation; here a loop", Tables: "rndv-overhead", Rows: "^cg, .*auto", Column: muster, Op: AtMost, Limit: 4},
			{Source: "t1", Where: "4.4.2", Text: "and 21 % without adaptation", Tables: "rndv-overhead", Rows: "^cg, .*spec", Column: muster, Op: AtMost, Limit: 21},
			{Source: "t1", Where: "4.4.1", Text: "exchange model 1: up to 32 % faster than without speculation", Tables: "exchange-get", Rows: "^model 1", Column: muster, Op: AtMost, Limit: -32, Best: true},
			{Source: "t1", Where: "4.4.1", Text: "exchange model 2: up to 20 % faster", Tables: "exchange-get", Rows: "^model 2", Column: muster, Op: AtMost, Limit: -20, Best: true},
			{Source: "t1", Where: "4.4.2", Text: "NAS BT, class A: 30 % less wait time", Reason: "needs NAS BT, which is not part of this repository; the study of speculation has MG with its pattern"},
		}},
		{Title: "Frequently used buffers", Claims: []Claim{
			{Source: "t1", Where: "5.5.1", Text: "eager sends: up to 14 % faster", Tables: "reuse", Rows: "^eager, .* gain$", Column: muster, Op: AtLeast, Limit: 14, Best: true},
			{Source: "t1", Where: "5.5.1", Text: "put: up to 20 % faster", Tables: "reuse", Rows: "^put, .* gain$", Column: muster, Op: AtLeast, Limit: 20, Best: true},
			{Source: "p1", Where: "7", Text: "get: up to 17 % faster", Tables: "reuse", Rows: "^get, .* gain$", Column: muster, Op: AtLeast, Limit: 17, Best: true},
			{Source: "t1", Where: "5.5.2", Text: "without reuse at most 2 % slower", Tables: "reuse", Rows: "no reuse$", Column: muster, Op: AtLeast, Limit: -2},
			{Source: "t1", Where: "5.5.1", Text: "broadcast: up to 25 % faster", Tables: "reuse-coll", Rows: "^bcast", Column: muster, Op: AtLeast, Limit: 25, Best: true},
			{Source: "t1", Where: "5.5.2", Text: "MILC: send time −7 %", Reason: "needs MILC of SPEC MPI2007, which is not free"},
			{Source: "t1", Where: "5.5.2", Text: "AMG, which reuses few buffers: at most 2 % slower", Reason: "needs AMG2006; the rows without reuse above have its pattern"},
		}},
		{Title: "Datagram iWARP", Claims: []Claim{
			{Source: "t1", Where: "6", Text: "MPI latency up to 25 % lower than over connections", Tables: "dgram-latency", Rows: "rd over rc", Column: muster, Op: AtMost, Limit: 0.75, Best: true},
			{Source: "t1", Where: "6.6.1", Text: "verbs latency of UD below RC", Tables: "dgram-verbs", Column: muster, Op: AtMost, Limit: 1},
			{Source: "t1", Where: "6.6.1", Text: "bidirectional bandwidth of two pairs: 40 % higher at 2 KB", Tables: "dgram-bibw", Rows: "^2 KB", Column: muster, Op: AtLeast, Limit: 1.4},
			{Source: "t1", Where: "6.6.1", Text: "the same, higher at most sizes (here: all)", Tables: "dgram-bibw", Column: muster, Op: AtLeast, Limit: 1},
			{Source: "t1", Where: "6.6.2", Text: "up to 30 % less memory (communication memory, 32 ranks)", Tables: "channel-memory", Column: muster, Op: AtMost, Limit: 0.7},
			{Source: "t1", Where: "6.6.2", Text: "SMG2000: run time up to 45 % lower on 64 cores", Reason: "needs SMG2000 and a cluster of 64 cores with 10 Gbit/s Ethernet; the study of channels has radix sort"},
		}},
		{Title: "Memory of the eager protocol", Claims: []Claim{
			{Source: "p3", Where: "5", Text: "receive buffers a tenth of those for each connection", Tables: "eager-memory", Rows: "^receive buffers", Column: muster, Op: AtMost, Limit: 0.1},
			{Source: "p3", Where: "5", Text: "the same speed", Tables: "eager-latency", Column: muster, Op: AtMost, Limit: 1.05},
			{Source: "p3", Where: "5", Text: "AMG, SMG2000, NAMD, HPL and others on up to 512 processes: as fast as with receive buffers for each peer", Reason: "needs these applications and a cluster; the study of eager channels has radix sort and CG"},
			{Source: "p3", Where: "5", Text: "constant 5–10 MB of communication memory for each process", Tables: "hosts-memory-*", Count: 2, Rows: "^memory", Column: muster, Op: AtMost, Limit: 10},
			{Text: "an idle peer: reliable datagrams over connections", Tables: "idle-peer", Rows: "^total", Column: muster, Op: AtMost, Limit: 0.05},
		}},
		{Title: "Collectives", Note: `T2 used clusters of 4 SMP nodes with 4 processors each: with two rails against the vendor's library in chapters 3 and 4, with one
port against MVAPICH in chapters 5 and 6. Here four hosts run 16 ranks. The reference is our plain algorithm (chapters 3 to 5,
awareness) or Open MPI (chapter 6).`, Claims: []Claim{
			{Source: "t2", Where: "3.6.2", Text: "multi-port gather ×2.15 at 4 KB", Tables: "ports-gather", Rows: "^4 KB, 2-port tree", Column: muster, Op: AtMost, Limit: 0.465},
			{Source: "t2", Where: "3.6.3", Text: "multi-port Direct allgather ×1.49 at 32 KB", Tables: "ports-allgather", Rows: "^32 KB", Column: muster, Op: AtMost, Limit: 0.671},
			{Source: "t2", Where: "3.6.4", Text: "multi-port Direct alltoall ×2.26 at 2 KB", Tables: "ports-alltoall", Rows: "^2 KB", Column: muster, Op: AtMost, Limit: 0.442},
			{Source: "t2", Where: "4.5", Text: "node-aware Bruck allgather ×1.96 at 4 KB", Tables: "node-bruck", Rows: "^4 KB", Column: muster, Op: AtMost, Limit: 0.51},
			{Source: "t2", Where: "5.6", Text: "gather-based faster than one group up to 32 B", Tables: "node-groups", Rows: "^16 B, gather-based", Column: muster, Op: AtMost, Limit: 1},
			{Source: "t2", Where: "5.6", Text: "one group faster than the others at 64 B–2 KB", Tables: "node-groups", Rows: "^1 KB, (gather-based|two groups|four groups)", Column: muster, Op: AtLeast, Limit: 1},
			{Source: "t2", Where: "5.6", Text: "two groups faster than one at 4–64 KB", Tables: "node-groups", Rows: "^16 KB, two groups", Column: muster, Op: AtMost, Limit: 1},
			{Source: "t2", Where: "6.5", Text: "arrival-aware faster than unaware at all sizes", Tables: "aware-*", Count: 2, Rows: "over direct, MIF (32|128|512)$", Column: muster, Op: AtMost, Limit: 1},
			{Source: "t2", Where: "6.5.1", Text: "arrival-aware alltoall ×3.1 at 8 KB, MIF 32", Tables: "aware-alltoall", Rows: "^8 KB, pap_direct over pairwise, MIF 32$", Column: muster, Op: AtMost, Limit: 0.32},
			{Source: "t2", Where: "6.5.1", Text: "arrival- and node-aware alltoall ×3.5 at 4 B, MIF 32", Tables: "aware-alltoall", Rows: "^4 B, pap_shm_direct over pairwise, MIF 32$", Column: muster, Op: AtMost, Limit: 0.29},
			{Source: "t2", Where: "6.5.2", Text: "arrival- and node-aware allgather ×2.5 at 4 B, MIF 32", Tables: "aware-allgather", Rows: "^4 B, pap_shm_direct over recursive doubling, MIF 32$", Column: muster, Op: AtMost, Limit: 0.4},
			{Source: "t2", Where: "6.5.1", Text: "alltoall, mean time: ×3.1 at 8 KB and ×3.5 at 4 B (MIF 32), ×1.5 and ×1.2 (MIF 512)", Tables: "coll-mif-mean", Rows: "^alltoall", Column: ratio},
			{Source: "t2", Where: "6.5.2", Text: "allgather: ×3.1 at 8 KB and ×2.5 at 1 B (MIF 32), ×1.3 and ×1.2 (MIF 512)", Tables: "coll-mif-mean", Rows: "^allgather", Column: ratio},
			{Source: "t2", Where: "6.5.1", Text: "25 % or 75 % late: faster", Tables: "coll-mif-late", Column: ratio},
		}},
		{Title: "Against Open MPI and MPICH: our own targets", Claims: []Claim{
			{Text: "latency, shared memory", Tables: "latency", Column: ratio},
			{Text: "bandwidth, shared memory", Tables: "bw", Column: ratio},
			{Text: "message rate", Tables: "rate", Column: ratio},
			{Text: "C programs: latency, shared memory", Tables: "c-latency", Column: ratio},
			{Text: "C programs: message rate", Tables: "c-rate", Column: ratio},
			{Text: "C programs: memory of each of 64 ranks", Tables: "c-memory", Column: ratio},
			{Text: "C programs: start of 64 ranks", Tables: "c-start", Column: ratio},
			{Text: "latency over that of the bare device", Tables: "device", Column: muster},
			{Text: "barrier of 16 ranks on 2 cores", Tables: "barrier", Column: ratio},
			{Text: "five collectives, 2 ranks", Tables: "coll-*-2", Count: 5, Column: ratio},
			{Text: "four collectives, 16 ranks", Tables: "coll-*-16", Count: 4, Column: ratio},
			{Text: "non-blocking collectives: overlap, points above the better peer", Tables: "coll-iallreduce,coll-iallgather", Column: muster, Op: AtLeast, Limit: 0, Gap: true},
			{Text: "put, get, fetch-and-add", Tables: "rma-*", Count: 3, Column: ratio},
			{Text: "exchange model 1 and 2", Tables: "exchange", Column: ratio},
			{Text: "memory of each of 64 ranks", Tables: "memory", Column: ratio},
			{Text: "start of 64 ranks", Tables: "start", Column: ratio},
			{Text: "CPU while waiting, %", Tables: "idle", Column: muster},
			{Text: "latency over bare libfabric", Tables: "ofi-latency", Column: ratio},
			{Text: "latency, libfabric over TCP", Tables: "tcp", Column: ratio},
			{Text: "latency, software iWARP on loopback", Tables: "iwarp-*", Count: 3, Column: ratio},
			{Text: "two hosts: latency", Tables: "lab-latency,lab-latency-long", Column: ratio},
			{Text: "two hosts: bandwidth, both directions, two rails", Tables: "lab-bw,lab-bibw,lab-rails", Column: ratio},
			{Text: "two hosts: bandwidth of unlimited cables and of 10 Gbit/s, also relative to bare UDP", Tables: "cable-bw,cable-bw-rd,cable10-bw,cable10-bw-rd", Column: ratio},
			{Text: "two hosts: encrypted messages relative to what the cipher on one core allows", Tables: "encrypt-bw,encrypt-bw-rd,encrypt-latency,encrypt-latency-rd", Rows: "B$", Column: ratio},
			{Text: "two hosts: processor time of a message of 8 KB, also in alltoall", Tables: "cpu,cpu-alltoall", Column: ratio},
			{Text: "two hosts: bandwidth of two rails relative to one", Tables: "rails-bw,rails-bibw", Column: ratio},
			{Text: "two hosts: bandwidth with 1 % loss, MB/s", Tables: "loss-bw", Column: muster},
			{Text: "four hosts: reductions of 64 KB after the last arrival", Tables: "tail-reduce", Column: ratio},
			{Text: "four hosts: stalled rounds among 10,000", Tables: "stalls", Column: muster},
			{Text: "four hosts: longest of these rounds, µs", Tables: "stalls-time", Column: muster},
			{Text: "four hosts: collectives after the last arrival", Tables: "coll-lab-*", Count: 3, Column: ratio},
			{Text: "four hosts: start of 64 ranks to first message, s", Tables: "hosts-start", Column: muster},
		}},
	}
}
