package soft

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
	base "github.com/muster-mpi/muster/rdma/internal/soft"
)

// Several paths. A device may have up to 8 sockets, each on an interface of its own: RD
// uses them together, and goes on when one of them fails. Package reliable decides which
// path carries what, and whether a path delivers. A path is one of our sockets and the
// endpoint of the peer that it is paired with; each end numbers its own paths.

// Path is an interface that a device uses.
type Path struct {
	Name    string         // in reports, usually that of the interface
	Bind    netip.AddrPort // as Config.Bind
	Network netip.Prefix   // of the interface: endpoints on one network are paired
}

// network is how datagrams reach the peers: by the socket of each path, or the device below.
type network struct {
	below     *carrier     // instead of sockets (carrier.go)
	first     *socket      // of the first path
	more      []*socket    // of further paths
	paths     []Path       // empty without Config.Paths
	endpoints [][]endpoint // by PeerID and path, if there are several
	set       base.Set     // of all sockets, if there are several
	on        int          // the path that is received from
}

// openPaths opens the sockets of all paths but the first.
func (d *Device) openPaths(c *Config) error {
	if d.net.paths = slices.Clone(c.Paths); len(d.net.paths) > 0 {
		d.attr.Name, d.attr.Transports, d.attr.Ops = "rail", rdma.RD, rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead)
	}
	for i := 1; i < len(d.net.paths); i++ {
		s, err := openSocket(d.net.paths[i].Bind, c.SocketBuffer)
		if err != nil {
			return fmt.Errorf("soft: open a UDP socket on %v: %w", d.net.paths[i].Bind, err)
		}
		if !c.NoRuns {
			s.allowRuns(c.Datagram)
		}
		d.net.more = append(d.net.more, s)
	}
	if len(d.net.more) == 0 {
		return nil
	}
	if !d.net.runs() {
		d.outgoing.windowPool.MaxRun = 1
	}
	// Reads and Writes use all paths.
	for _, cost := range []*rdma.Cost{&d.attr.ReadCost, &d.attr.PutCost} {
		cost.PerByte /= float64(len(d.net.paths))
	}
	if err := d.net.set.Open(); err != nil {
		return err
	}
	d.soft.SetSource(d.net.set.FD(), nil)
	for i := range d.net.paths {
		fd, _ := d.net.socketOf(i).source()
		if err := d.net.set.Watch(fd, 0, readable); err != nil { // its file reports errors too: see noteTrouble
			return err
		}
	}
	return nil
}

// several reports whether the device has more than one path.
func (n *network) several() bool { return len(n.more) > 0 }

// socketOf returns the socket of a path.
func (n *network) socketOf(on int) *socket {
	if on == 0 {
		return n.first
	}
	return n.more[on-1]
}

// sockets returns their number.
func (n *network) sockets() int {
	if n.below != nil {
		return 0
	}
	return 1 + len(n.more)
}

// close closes the sockets, or the device below.
func (n *network) close() error {
	if n.below != nil {
		return errors.Join(n.below.closeQueues(), n.below.dev.Close())
	}
	err := n.first.close()
	for _, s := range n.more {
		_ = s.close() // the first error matters
	}
	if n.several() {
		n.set.Close()
	}
	return err
}

// receiveAll processes what has arrived on all paths.
func (d *Device) receiveAll() (came bool) {
	if d.net.below != nil {
		return d.receiveBelow()
	}
	d.net.on = 0
	came = d.receiveDatagrams()
	for i := range d.net.more {
		d.net.on = i + 1
		came = d.receiveDatagrams() || came
	}
	return came
}

// match returns, for each path of ours, the endpoint of the peer to use. Endpoints on the
// same network are paired first, then the remaining ones in order. If the peer has fewer,
// several of ours share one. Probes show whether they reach it.
func match(ours []Path, theirs []endpoint) []endpoint {
	pairs := make([]endpoint, max(len(ours), 1))
	taken := make([]bool, len(theirs))
	for i := range ours {
		for j := range theirs {
			if !taken[j] && ours[i].Network.IsValid() && ours[i].Network.Contains(theirs[j].addrPort.Addr()) {
				pairs[i], taken[j] = theirs[j], true
				break
			}
		}
	}
	for i := range pairs {
		if pairs[i].addrPort.IsValid() {
			continue
		}
		j := slices.Index(taken, false)
		if j < 0 {
			j = i % len(theirs)
		}
		pairs[i], taken[j] = theirs[j], true
	}
	return pairs
}

// endsOf returns the endpoints of a peer, by path.
func (n *network) endsOf(id rdma.PeerID) *[]endpoint {
	for int(id) >= len(n.endpoints) {
		n.endpoints = append(n.endpoints, nil)
	}
	return &n.endpoints[id]
}

// endpointOf returns where a path leads, nil if that is not known.
func (d *Device) endpointOf(id rdma.PeerID, on int) *rawAddress {
	if !d.net.several() {
		return &d.peers.list[id].at
	}
	if ends := *d.net.endsOf(id); on < len(ends) && ends[on].addrPort.IsValid() {
		return &ends[on].raw
	}
	return nil
}

// leadsTo reports whether a path to a peer leads to an address.
func (n *network) leadsTo(id rdma.PeerID, at netip.AddrPort) bool {
	return n.several() && slices.ContainsFunc(*n.endsOf(id), func(e endpoint) bool { return e.addrPort == at })
}

// ownEndpoints returns our endpoints as an address has them.
func (d *Device) ownEndpoints() string {
	if d.net.below != nil {
		return string(d.net.below.qp.Addr())
	}
	text := d.net.first.local.String()
	for _, s := range d.net.more {
		text += "," + s.local.String()
	}
	return text
}

// recordPath records on which path a datagram of a peer has arrived: acks of its packets, and
// replies, go back over it. A packet of a run that arrived alone has no tag, so it does not
// show where the path leads: from is nil.
func (q *pair) recordPath(p *peer, from *rawAddress, path uint8) {
	d := q.dev
	if !d.net.several() && path == 0 {
		return
	}
	if int(path) >= p.Paths() {
		p.AddPaths(int(path) + 1)
		for on := len(d.net.more) + 1; on < p.Paths(); on++ {
			p.Reach(on, false) // it is the peer's alone
		}
	}
	p.SetReplyPath(int(path), d.net.on)
	p.Prefer(d.net.on)
	if d.net.several() && from != nil && d.endpointOf(p.id, d.net.on) == nil {
		ends := d.net.endsOf(p.id)
		if *ends == nil {
			*ends = make([]endpoint, len(d.net.paths))
		}
		(*ends)[d.net.on] = endpoint{from.addrPort(), *from}
		p.Reach(d.net.on, true)
	}
}

// reachPaths prepares a new peer for several paths.
func (q *pair) reachPaths(p *peer) {
	d := q.dev
	if !d.net.several() {
		return
	}
	p.AddPaths(len(d.net.paths))
	for on := range d.net.paths {
		p.Reach(on, d.endpointOf(p.id, on) != nil)
	}
	p.Prefer(firstPath(d.name, d.peers.list[p.id].name, len(d.net.paths)))
}

// firstPath returns the path on which two processes begin. Short messages stay on the path
// that the peer used last, so if all pairs began on the same one, an exchange of many of
// them would use no other. It is the same at both ends, and divides the pairs of two hosts
// as well as those of a rank.
func firstPath(a, b uint32, paths int) int {
	mixed := (uint64(min(a, b))<<32 | uint64(max(a, b))) * 0x9E3779B97F4A7C15 // 2⁶⁴ divided by the golden ratio
	mixed ^= mixed >> 32
	return int(mixed * 0xBF58476D1CE4E5B9 >> 32 % uint64(paths)) // an odd number with random bits
}

// pendingAck returns the path of the peer whose pending ack should go with a packet on a
// path of ours, -1 if there is none.
func (p *peer) pendingAck(on int) int {
	for k := range p.Paths() {
		if p.ReplyPath(k) == on && p.AckPending(k) {
			return k
		}
	}
	return -1
}

// ackRoom returns the length of the ack that should go with a packet on a path of ours.
func (p *peer) ackRoom(on int) int {
	k := p.pendingAck(on)
	if k < 0 {
		return 0
	}
	return ackLen + 8*min(p.AckWords(k), piggybackWords)
}

// runs reports whether runs can be sent on all paths.
func (n *network) runs() bool {
	for on := range n.sockets() {
		if !n.socketOf(on).runs() {
			return false
		}
	}
	return n.below == nil
}

// acksPending reports whether an ack is pending.
func (p *peer) acksPending() bool {
	for k := range p.Paths() {
		if p.AckPending(k) {
			return true
		}
	}
	return false
}

// arrangePackets sorts the packets in the outbox by path, so that the kernel gets those of
// a socket together. Their order across paths does not matter.
func (o *outbox) arrangePackets() {
	slices.SortStableFunc(o.packets[:o.n], func(a, b packet) int { return int(a.on) - int(b.on) })
}

// together returns how many packets from the first on go to the same socket.
func together(list []packet) int {
	n := 1
	for n < len(list) && list[n].on == list[0].on {
		n++
	}
	return n
}

// Rails returns the number of paths.
func (d *Device) Rails() int { return 1 + len(d.net.more) }

// Counts returns the counts of each path, in the order of Config.Paths.
func (d *Device) Counts() []reliable.PathCounts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.outgoing.windowPool.Counts[:len(d.net.paths)])
}

// countPaths reports the counters of the paths.
func (d *Device) countPaths(add func(name rdma.Counter, value uint64)) {
	if !d.net.several() {
		return
	}
	for i, c := range d.outgoing.windowPool.Counts[:len(d.net.paths)] {
		add(rdma.Counter("rail-bytes."+d.net.paths[i].Name), c.Bytes)
		add("rails.left", c.Left)
		add("rails.back", c.Back)
		add("rails.again", c.Again)
	}
	add("rails.doubles", d.traffic.duplicates)
}

// Paths describes in one line how a peer is reached: each path with its state.
func (d *Device) Paths(id rdma.PeerID) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(id) >= len(d.peers.list) {
		return fmt.Sprintf("no peer has the handle %d", id)
	}
	var words []string
	for i := range d.net.paths {
		state := "not reached"
		for _, q := range d.pairs {
			if q != nil && int(id) < len(q.peers) && q.peers[id] != nil {
				state = q.peers[id].PathState(i)
			}
		}
		words = append(words, fmt.Sprintf("%s (%s)", d.net.paths[i].Name, state))
	}
	return fmt.Sprintf("peer %d over %s", d.peers.list[id].name, strings.Join(words, ", "))
}
