package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/sched"
	"github.com/muster-mpi/muster/rdma"
)

// Level packets: every rank has a real point-to-point machine (internal/p2p) and executes
// its schedule with a real sched.Run. The simulation delivers packets and work requests in
// virtual time, so that packets by kind, unexpected messages and credit are those of a
// program. Memory has no contents: all buffers of all ranks are the same bytes.
//
// What is not simulated: rings of busy peers (MUSTER_EAGER), the order of unordered sends
// by arrival, and the time of local copies. Whether a message of an arrival-aware schedule
// uses the RTR of its receiver depends on who is first, here and in a program.

// Packets selects the level. The zero value has the defaults of package mpi.
type Packets struct {
	// P2P configures the machines. Credit and Senders have the defaults of package mpi.
	P2P p2p.Config
}

// packets is the state of the level.
type packets struct {
	s         *Sim
	cfg       p2p.Config
	near, far *rdma.Attr
	calls     []packetCall
	ranks     []packetRank
	memory    []byte // of all buffers
	packet    []byte // the packet that arrives
	wire      []underWay
	free      []int32 // of wire
	keys      uint64
	pushes    map[uint64]push // by key
	peaks     Peaks
	graphs    int // bytes
}

// packetCall is a call; graphs are by rank, those of ranks that share one are the same.
type packetCall struct {
	graphs    []*sched.Graph
	of        []int32 // by rank
	before    int64
	inSegment bool
}

// packetRank is the state of a rank.
type packetRank struct {
	p      *packets
	me     int32
	m      *p2p.Machine
	links  []*p2p.Link // by peer
	run    *sched.Run
	waiter p2p.Waiter
	call   int
}

// underWay is a packet or a transfer on its way.
type underWay struct {
	head   [rdma.HeadMax]byte
	length uint16 // of head
	op     rdma.Op
	ends   uint8 // events that still refer to it, besides the next one
	bytes  int32
	id     uint64 // of the work request that completes
	key    uint64
}

type push struct {
	rank int32
	id   uint64
}

// Peaks are the largest amounts at one rank, and the rank.
type Peaks struct {
	// Unexpected is the length of the queue of messages without a receive, and their data.
	Unexpected      int `json:"unexpected"`
	UnexpectedRank  int `json:"unexpected_rank"`
	UnexpectedBytes int `json:"unexpected_bytes"`
	// Credit is the part of a sender's credit at one receiver that was in use.
	Credit     int64 `json:"credit"`
	CreditRank int   `json:"credit_rank"`
	NoCredit   int64 `json:"no_credit"` // short messages that used a rendezvous
	Links      int   `json:"links"`     // peers of a rank
}

// PacketCount is the number of packets of a kind that all ranks have sent.
type PacketCount struct {
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
}

// mpiCredit is the default of Config.Advanced.Credit of package mpi.
const mpiCredit = 8 << 20

func (s *Sim) newPackets(c *Config) error {
	p := &packets{s: s, cfg: c.Packets.P2P, near: s.m.Near.device(true), far: s.m.Far.device(false), pushes: map[uint64]push{}}
	p.cfg.Sizes = new(p2p.Sizes)
	if p.cfg.Credit == 0 {
		p.cfg.Credit = mpiCredit
	}
	if p.cfg.Senders == 0 {
		p.cfg.Senders = s.size - 1
	}
	for i := range c.Calls {
		if err := p.addCall(&c.Calls[i]); err != nil {
			return err
		}
	}
	p.packet = make([]byte, rdma.HeadMax+max(p.near.MaxSend, p.far.MaxSend))
	p.ranks = make([]packetRank, s.size)
	for r := range p.ranks {
		k := &p.ranks[r]
		k.p, k.me = p, int32(r)
		k.m = p2p.New(p.cfg, p)
	}
	s.packets = p
	return nil
}

// addCall builds the graphs of a call.
func (p *packets) addCall(c *Call) error {
	if c.Algorithm == nil {
		return fmt.Errorf("level packets simulates collectives only, not a replayed program")
	}
	n := p.s.size
	call := packetCall{of: make([]int32, n), before: int64(c.Before * picos), inSegment: c.Segment}
	var pool sched.Pool
	var b sched.Builder
	shape := c.Shape
	shared := map[int]int32{}
	for r := range n {
		shape.Rank = r
		b.Reset(r, n)
		if c.Algorithm.Generates(&shape) {
			g, err := c.Algorithm.Graph(&b, &shape, c.Params)
			if err != nil {
				return err
			}
			call.of[r] = int32(len(call.graphs))
			call.graphs = append(call.graphs, g)
			continue
		}
		if r == 0 {
			if _, err := c.Algorithm.Graph(&b, &shape, c.Params); err != nil { // checks what holds for all ranks
				return err
			}
			b.Reset(r, n)
		}
		c.Algorithm.Build(&b, &shape, c.Params)
		g, err := pool.Share(&b)
		if err != nil {
			return err
		}
		i, ok := shared[g.Index]
		if !ok {
			i = int32(len(call.graphs))
			shared[g.Index] = i
			call.graphs = append(call.graphs, g.Graph)
			p.reach(g.Graph)
		}
		call.of[r] = i
	}
	for _, g := range call.graphs {
		p.graphs += g.Bytes()
	}
	if c.Algorithm.Generates(&shape) {
		p.extend(shape.Size * max(shape.Send.Each, shape.Recv.Each))
	}
	p.calls = append(p.calls, call)
	return nil
}

// reach extends the memory to what a graph uses.
func (p *packets) reach(g *sched.Graph) {
	most := max(g.Tmp, g.Shared)
	for i := range g.Ops {
		op := &g.Ops[i]
		most = max(most, op.Src.Off+op.Src.Len, op.Dst.Off+op.Dst.Len)
	}
	p.extend(most)
}

func (p *packets) extend(most int) {
	if most > len(p.memory) {
		p.memory = make([]byte, most)
	}
}

// Register and Deregister are those of p2p.Memory. A key identifies a registration.
func (p *packets) Register(_ *p2p.Link, mem []byte, _ rdma.Access) (rdma.MR, error) {
	p.keys++
	return rdma.MR{Base: 1, Len: uint64(len(mem)), RKey: p.keys, LKey: uint32(p.keys)}, nil
}

func (p *packets) Deregister(_ *p2p.Link, mr rdma.MR) { delete(p.pushes, mr.RKey) }

// handle does what a rank does when something happens. Its clock is k.cpu.
func (p *packets) handle(k *rank, e *event) {
	own := &p.ranks[e.dst]
	switch e.kind {
	case evStart:
		own.start(k)
	case evHand:
		u := p.wire[e.op]
		p.release(e.op)
		if u.op == rdma.OpSend {
			p.deliver(own, k, e, &u)
			break
		}
		own.m.HandleCompletion(u.id, rdma.StatusOK, int(u.bytes)) // a transfer by this rank has ended
	case evData: // the data of a read of this rank has arrived, or of a write of a peer
		u := p.wire[e.op]
		p.release(e.op)
		if u.op == rdma.OpWrite {
			return
		}
		k.cpu += p.s.receiveCost(e.dst, e.src, e.bytes, true)
		own.m.HandleCompletion(u.id, rdma.StatusOK, int(u.bytes))
	case evPull: // a peer reads memory of this rank
		p.s.sendPulled(e.dst, k, e)
		return
	case evSent: // the data of a write has left this rank, or that of a peer's read
		u := p.wire[e.op]
		p.release(e.op)
		if u.op != rdma.OpWrite {
			return
		}
		own.m.HandleCompletion(u.id, rdma.StatusOK, int(u.bytes))
	}
	own.proceed(k)
}

// arrived passes a packet to the machine.
func (p *packets) deliver(own *packetRank, k *rank, e *event, u *underWay) {
	k.cpu += p.s.receiveCost(e.dst, e.src, u.bytes, false)
	n := copy(p.packet, u.head[:u.length])
	own.m.HandlePacket(own.link(e.src), p.packet[:n+int(u.bytes)])
	if q := own.m.CountUnexpected(); q > p.peaks.Unexpected {
		p.peaks.Unexpected, p.peaks.UnexpectedRank = q, int(e.dst)
	}
}

// start enters the next call.
func (own *packetRank) start(k *rank) {
	c := &own.p.calls[own.call]
	if own.run == nil {
		own.run = &sched.Run{Port: own, Rank: int(own.me)}
		own.waiter.Whole = own
	}
	mem := own.p.memory
	own.run.Graph, own.run.InSegment = c.graphs[c.of[own.me]], c.inSegment
	own.run.Mem = [sched.Bufs][]byte{mem, mem, mem, mem}
	k.begun = true
	own.run.Start()
}

// proceed posts what the machine requests and continues the run, until nothing is left to do.
func (own *packetRank) proceed(k *rank) {
	for {
		own.flush(k)
		done := own.m.Out.Done
		if len(done) == 0 {
			break
		}
		own.m.Out.Done = nil
		for _, x := range done {
			id, err := int(x.Part), x.Err
			own.m.Free(x)
			own.run.HandleEnd(id, err)
		}
	}
	if !k.begun || !own.run.Done() {
		return
	}
	s := own.p.s
	k.begun = false
	if own.call++; own.call == len(own.p.calls) {
		k.done, k.end = true, k.cpu
		own.run = nil
		s.left--
		return
	}
	k.cpu += s.slow(own.me, own.p.calls[own.call].before)
	s.q.push(event{t: k.cpu, dst: own.me, kind: evStart})
}

// Post is that of sched.Port: what the engine does for a message of a collective.
func (own *packetRank) Post(r *sched.Run, id int, op *sched.Op, b []byte) (ended bool, err error) {
	k := &own.p.s.ranks[own.me]
	l := own.link(r.Peer(op))
	m := own.m
	tag := int32(own.call)<<14 | int32(op.Stream)
	var x *p2p.Xfer
	if op.Kind == sched.Send {
		wr := m.SendOne(l, 1, own.me, tag, b)
		if wr != nil {
			own.post(k, l, &wr[0])
		}
		if wr != nil || m.SendNow(l, 1, own.me, tag, b) {
			own.flush(k)
			own.used(l)
			return true, nil
		}
		x = m.New()
		x.Link, x.Ctx, x.Source, x.Tag, x.Buf = l, 1, own.me, tag, b
		m.Send(x)
		own.used(l)
	} else {
		x = m.New()
		x.Link, x.Ctx, x.Source, x.Tag, x.Buf = l, 1, int32(l.Rank), tag, b
		m.Recv(x)
		if r.Graph.Ports > 0 { // it tells its sender that this rank has arrived
			m.Offer(x)
		}
	}
	own.flush(k)
	if x.Done() {
		err := x.Err
		m.Free(x)
		return true, err
	}
	x.Owner, x.Part = &own.waiter, int32(id)
	return false, nil
}

// Reduce is that of sched.Port.
func (own *packetRank) Reduce(_ *sched.Run, inout, _ []byte) {
	k := &own.p.s.ranks[own.me]
	own.p.s.local(own.me, k, &operation{kind: sched.Reduce, bytes: int32(len(inout))})
}

// used records the largest use of credit.
func (own *packetRank) used(l *p2p.Link) {
	if n := l.CreditUsed(own.m); n > own.p.peaks.Credit {
		own.p.peaks.Credit, own.p.peaks.CreditRank = n, int(own.me)
	}
}

// link returns the link to a peer.
func (own *packetRank) link(peer int32) *p2p.Link {
	i, ok := slices.BinarySearchFunc(own.links, peer, func(l *p2p.Link, peer int32) int { return l.Rank - int(peer) })
	if ok {
		return own.links[i]
	}
	p := own.p
	l := &p2p.Link{Rank: int(peer), Peer: rdma.PeerID(peer), Attr: p.far, Open: true}
	if p.s.node(own.me) == p.s.node(peer) {
		l.Attr = p.near
	}
	own.m.SetUp(l)
	own.links = slices.Insert(own.links, i, l)
	return l
}

// flush posts the work requests of the machine.
func (own *packetRank) flush(k *rank) {
	for len(own.m.Out.WR) > 0 {
		o := &own.m.Out
		list, links := o.WR, o.Link
		o.WR, o.Link = nil, nil
		for i := range list {
			own.post(k, links[i], &list[i])
			if list[i].ID != 0 && list[i].Flags&rdma.Inline != 0 {
				own.m.HandleTaken(list[i].ID)
			}
		}
		if len(o.WR) == 0 {
			clear(list)
			o.WR, o.Link = list[:0], links[:0]
		}
	}
}

// eachLink is for counters.
func (own *packetRank) eachLink(visit func(*p2p.Link)) {
	for _, l := range own.links {
		visit(l)
	}
}

func (p *packets) hold(u underWay) int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		p.wire[i] = u
		return i
	}
	p.wire = append(p.wire, u)
	return int32(len(p.wire) - 1)
}

func (p *packets) release(i int32) {
	if u := &p.wire[i]; u.ends > 0 {
		u.ends--
		return
	}
	p.free = append(p.free, i)
}

// post starts a work request.
func (own *packetRank) post(k *rank, l *p2p.Link, wr *rdma.SendWR) {
	p, s, peer := own.p, own.p.s, int32(l.Rank)
	n := int32(wr.Body.Len())
	u := underWay{head: wr.Head, length: wr.HeadLen, op: wr.Op, bytes: n, id: wr.ID, key: wr.RKey}
	c := s.costs(own.me, peer)
	near := c == &s.near
	switch wr.Op {
	case rdma.OpSend:
		e := event{src: own.me, dst: peer, op: p.hold(u), bytes: n + int32(wr.HeadLen), kind: evHand}
		t := c.processor(n)
		if near {
			t = s.memory(own.me, t, n)
			s.stats.Near++
			s.stats.NearBytes += int64(n)
		} else {
			s.stats.Far++
			s.stats.FarBytes += int64(n)
		}
		k.cpu += s.slow(own.me, t)
		if wr.ID != 0 && wr.Flags&rdma.Inline == 0 {
			p.end(own.me, k.cpu, u)
		}
		if near {
			e.t = k.cpu + c.latency
			s.q.push(e)
			return
		}
		s.inject(k.cpu, &e)
	case rdma.OpPush:
		p.pushes[wr.RKey] = push{own.me, wr.ID}
	case rdma.OpPull, rdma.OpRead:
		if near {
			t := max(2*c.processor(n)-3*c.short[0], c.short[0])
			k.cpu += s.slow(own.me, s.memory(own.me, t, n))
			p.end(own.me, k.cpu, u)
			if from, ok := p.pushes[wr.RKey]; ok && wr.Op == rdma.OpPull {
				p.end(from.rank, k.cpu+c.latency, underWay{op: rdma.OpPush, bytes: n, id: from.id})
			}
			return
		}
		u.ends = 1 // the data leaves, and arrives
		k.cpu += s.control(own.me, peer)
		s.q.push(event{t: k.cpu + c.latency + c.gap, src: own.me, dst: peer, op: p.hold(u), bytes: n, kind: evPull})
	case rdma.OpWrite:
		k.cpu += s.slow(own.me, c.processor(n))
		if near {
			p.end(own.me, k.cpu, u)
			return
		}
		u.ends = 1
		s.inject(k.cpu, &event{src: own.me, dst: peer, op: p.hold(u), bytes: n, kind: evData})
	default:
		panic(fmt.Sprintf("sim: a work request %v", wr.Op))
	}
}

// end completes a work request of a rank at a time.
func (p *packets) end(rank int32, t int64, u underWay) {
	if u.op == rdma.OpSend {
		u.op = rdma.OpWrite // the request, not the packet
	}
	p.s.q.push(event{t: t, src: rank, dst: rank, op: p.hold(u), kind: evHand})
}

// count adds what the machines have counted to the result.
func (p *packets) count(x *Result) {
	sum := map[string]int64{}
	var f p2p.Footprint
	runs := 0
	for r := range p.ranks {
		own := &p.ranks[r]
		own.m.Packets(own.eachLink, func(kind string, n uint64) { sum[kind] += int64(n) })
		g := own.m.Footprint(own.eachLink)
		f.Links, f.Operations, f.Matching = f.Links+g.Links, f.Operations+g.Operations, f.Matching+g.Matching
		p.peaks.UnexpectedBytes = max(p.peaks.UnexpectedBytes, g.UnexpectedPeak)
		p.peaks.Links = max(p.peaks.Links, len(own.links))
		for _, l := range own.links {
			p.peaks.NoCredit += int64(l.Stats.NoCredit)
		}
	}
	for _, c := range p.calls {
		for _, g := range c.of {
			runs = max(runs, c.graphs[g].Slots())
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(sum)) {
		x.Packets = append(x.Packets, PacketCount{kind, sum[kind]})
	}
	x.Peaks = &p.peaks
	x.Memory = []Memory{{"links", f.Links}, {"operations", f.Operations}, {"matching", f.Matching},
		{"machines", machineSize * len(p.ranks)}, {"runs", (runSize + 8*runs) * len(p.ranks)}, {"schedules", p.graphs},
		{"packets under way", wireSize * len(p.wire)}, {"events", eventSize * p.s.q.most}}
}

// Sizes of structures, rounded up; the machine has its output queues too.
const machineSize, runSize, wireSize = 1600, 400, 96
