package iwarp

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// A mesh has RD queue pairs over connections: it connects to a peer when the first message
// to it is posted, and accepts connections of peers at any time. A connection that breaks
// is not replaced, and the peer is lost; mesh_end.go explains why.
//
// All connections of a mesh have one address, that of its queue pair. Its token ends with
// the name of this device, so that a caller is known by the address in its greeting. If two
// peers dial each other, the connection of the one with the smaller address is kept.

// OpenMesh opens a device for RD queue pairs. name is the number by which peers identify
// it; in a job it is the rank.
func OpenMesh(cfg Config, name uint32) (rdma.Device, error) {
	cfg.endsSilent = true
	opened, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	m := &mesh{device: opened.(*device), name: name, byAddr: map[rdma.Addr]rdma.PeerID{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.device.attr.MaxInline = min(m.device.attr.MaxInline, m.device.attr.MaxSend-rdma.HeadMax)
	m.attr = m.device.attr
	m.attr.Name, m.attr.Transports = "rc", rdma.RD
	return m, nil
}

type mesh struct {
	*device
	name   uint32
	attr   rdma.Attr
	pair   *meshPair
	peers  []*meshPeer // by PeerID
	byAddr map[rdma.Addr]rdma.PeerID
	made   uint64          // connections
	ctx    context.Context // of dials
	cancel context.CancelFunc
}

// meshPeer is a peer. The device's lock guards it.
type meshPeer struct {
	addr    rdma.Addr
	name    uint32
	qp      *queuePair // nil: there is no connection yet
	other   *queuePair // the other end of the connection of a device to itself
	dialing bool
}

// Attr describes the device.
func (m *mesh) Attr() *rdma.Attr { return &m.attr }

// Caps returns what the device can do in addition to rdma.Device.
func (m *mesh) Caps() rdma.Caps {
	c := m.device.Caps()
	c.NameOf, c.Explain, c.Abandon, c.Count = m.NameOf, m.Explain, m.Abandon, m.Count
	return c
}

// Resolve returns the handle for an address.
func (m *mesh) Resolve(a rdma.Addr) (rdma.PeerID, error) {
	_, token, ours, err := parseAddr(a)
	if err == nil && !ours {
		err = fmt.Errorf("iwarp: %q is not the address of a mesh", string(a))
	}
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peerAt(a, uint32(token)), nil
}

// peerAt returns the handle for an address, a new one if there is none.
func (m *mesh) peerAt(a rdma.Addr, name uint32) rdma.PeerID {
	id, known := m.byAddr[a]
	if !known {
		id = rdma.PeerID(len(m.peers))
		m.byAddr[a] = id
		m.peers = append(m.peers, &meshPeer{addr: a, name: name})
	}
	return id
}

// NameOf returns the name of a peer.
func (m *mesh) NameOf(id rdma.PeerID) (uint32, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if int(id) >= len(m.peers) {
		return 0, false
	}
	return m.peers[id].name, true
}

// Close closes all objects made with the device.
func (m *mesh) Close() error {
	m.cancel()
	return m.device.Close()
}

// meshPair is the queue pair of a mesh.
type meshPair struct {
	*queuePair // never connected: the address and the receive queue that all connections share
	mesh       *mesh
	cfg        rdma.QPConfig // of a connection
}

// NewQP returns the queue pair. A mesh has one.
func (m *mesh) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	if cfg.Type != rdma.RD {
		return nil, fmt.Errorf("iwarp: a mesh has queue pairs of type RD: %w", rdma.ErrUnsupported)
	}
	cfg.Type = rdma.RC
	qp, err := m.device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	q := qp.(*queuePair)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pair != nil {
		q.close()
		return nil, errors.New("iwarp: a mesh has one queue pair, and this one has it already")
	}
	q.setToken(q.token&^0xffffffff | uint64(m.name))
	q.greeted = true // nobody connects to it
	m.pair = &meshPair{queuePair: q, mesh: m, cfg: cfg}
	m.admitGuests(q.token, m.admit)
	if err := m.StartThread(); err != nil { // it accepts connections
		q.close()
		return nil, err
	}
	return m.pair, nil
}

// Connect is for RC.
func (p *meshPair) Connect(context.Context, rdma.Addr) error { return rdma.ErrUnsupported }

// Close closes the connections.
func (p *meshPair) Close() error {
	p.mesh.mu.Lock()
	defer p.mesh.mu.Unlock()
	for _, peer := range p.mesh.peers {
		for _, q := range []*queuePair{peer.qp, peer.other} {
			if q != nil {
				q.close()
			}
		}
	}
	p.close()
	return nil
}

// Pending returns the number of requests that the connections have not accepted completely.
func (p *meshPair) Pending() (n int) {
	p.mesh.mu.Lock()
	list := make([]*queuePair, 0, len(p.mesh.peers))
	for _, peer := range p.mesh.peers {
		if peer.qp != nil && peer.qp.state <= connected {
			list = append(list, peer.qp)
		}
	}
	p.mesh.mu.Unlock()
	for _, q := range list {
		n += q.Pending()
	}
	return n
}

// PostSend posts requests, for one peer after the other. They wait for the connection if it
// is not established yet.
func (p *meshPair) PostSend(wrs []rdma.SendWR) (n int, err error) {
	p.mesh.mu.Lock()
	defer p.mesh.mu.Unlock()
	for n < len(wrs) {
		q, err := p.mesh.connectionTo(wrs[n].Peer)
		if err != nil {
			return n, err
		}
		end := n + 1
		for end < len(wrs) && wrs[end].Peer == wrs[n].Peer {
			end++
		}
		k, err := q.postAllLocked(wrs[n:end])
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// connectionTo returns the connection to a peer. If there is none, it begins to connect.
func (m *mesh) connectionTo(id rdma.PeerID) (*queuePair, error) {
	switch {
	case m.Closed || m.pair.state == closed:
		return nil, rdma.ErrClosed
	case int(id) >= len(m.peers):
		return nil, fmt.Errorf("iwarp: there is no peer %d: call Resolve first", id)
	}
	p := m.peers[id]
	if p.qp == nil {
		q, err := m.makeConnection(id, p)
		if err != nil {
			return nil, err
		}
		p.qp = q
	}
	if p.qp.state == unconnected && !p.dialing && !p.qp.greeted {
		m.dial(p)
	}
	return p.qp, nil
}

// makeConnection makes the queue pair of a connection, with the address of the mesh.
func (m *mesh) makeConnection(id rdma.PeerID, p *meshPeer) (*queuePair, error) {
	cfg := m.pair.cfg
	cfg.Peer = id
	if n := m.cfg.ConnectionBuffers; n > 0 && m.pair.recvs.Lends {
		own, err := m.newSRQLocked(rdma.SRQConfig{Lend: true, Depth: n})
		if err != nil {
			return nil, err
		}
		cfg.SRQ = own
	}
	q, err := m.newQPLocked(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.SRQ == nil {
		q.recvs = m.pair.recvs
	}
	q.setToken(m.guestToken)
	q.peer, q.bound, q.early = p.addr, true, true
	return q, nil
}

// dial connects to a peer in the background.
func (m *mesh) dial(p *meshPeer) {
	q := p.qp
	at, token, _, err := parseAddr(p.addr)
	if err != nil {
		return // Resolve has checked it
	}
	p.dialing = true
	m.handshakes.Go(func() {
		ctx, cancel := context.WithTimeout(m.ctx, m.cfg.timeout())
		defer cancel()
		d := dial{q: q, peer: p.addr, at: at, token: token, ours: true, fd: noConn()}
		err := d.call(ctx)
		for errors.Is(err, errNoReply) && p.addr < q.addr {
			// It refuses us because it dials us: the smaller address has precedence. If it
			// does not reach us, we learn from the next attempt whether it still exists.
			if q.awaitCaller(ctx, redialPause) == nil {
				break
			}
			err = d.call(ctx)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		p.dialing = false
		if err == nil {
			m.made++
		} else if q.state == unconnected && !q.greeted {
			q.cause = fmt.Errorf("no TCP connection to %v: %w", at, err)
			if ctx.Err() != nil {
				q.cause = &rdma.SilenceError{For: m.cfg.timeout()}
			}
			q.abandon()
		}
		m.MarkMoved()
		m.WakeAll()
	})
}

// redialPause is how long a peer that has refused us may take to connect itself.
const redialPause = 200 * time.Millisecond

// awaitCaller waits until a caller has connected the queue pair.
func (q *queuePair) awaitCaller(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return q.await(ctx, func() (bool, error) { return q.state != unconnected, nil }, func() (conn, uint32) { return noConn(), 0 })
}

// admit accepts a connection of a peer, unless there is one.
func (m *mesh) admit(c conn, req *startup, from rdma.Addr) bool {
	if !hmac.Equal(req.private, m.cfg.greeting(greetRequest, m.guestToken, m.pair.addr, from)) || m.isBarred(from, true) {
		return false // it does not have the key, or guessed others
	}
	_, token, ours, err := parseAddr(from)
	if err != nil || !ours || m.pair.state == closed {
		return false
	}
	id := m.peerAt(from, uint32(token))
	p := m.peers[id]
	at := &p.qp
	if from == m.pair.addr {
		at = &p.other
	}
	if *at == nil {
		if *at, err = m.makeConnection(id, p); err != nil {
			return false
		}
	}
	q := *at
	if q.state != unconnected || q.greeted || at == &p.qp && p.dialing && m.pair.addr < from {
		return false
	}
	if !q.accept(c, req, m.cfg.greeting(greetReply, m.guestToken, m.pair.addr, from)) {
		return false
	}
	m.made++
	m.MarkMoved()
	m.WakeAll()
	return true
}
