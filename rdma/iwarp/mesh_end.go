package iwarp

import (
	"errors"
	"fmt"
	"reflect"
	"syscall"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// The end of a connection of a mesh, and the counters.
//
// A broken connection is not replaced. TCP delivers a prefix of what it has accepted, and
// without another path nobody can ask the peer how long that prefix is.

// Explain returns why the connection to a peer has ended.
func (m *mesh) Explain(id rdma.PeerID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if int(id) >= len(m.peers) || m.peers[id].qp == nil {
		return nil
	}
	return m.peers[id].qp.cause
}

// Abandon ends the connection to a peer that has failed.
func (m *mesh) Abandon(id rdma.PeerID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if int(id) >= len(m.peers) {
		return
	}
	peer := m.peers[id]
	if peer.qp == nil {
		q, err := m.makeConnection(id, peer)
		if err != nil {
			return // the device was closed
		}
		peer.qp = q
	}
	switch q := peer.qp; q.state {
	case unconnected:
		q.abandon()
	case connected, terminating:
		q.lose(rdma.StatusPeerGone)
	}
}

// Count reports the counters of the device, and the connections that were made.
func (m *mesh) Count(add func(name rdma.Counter, value uint64)) {
	m.device.Count(add)
	m.mu.Lock()
	defer m.mu.Unlock()
	add(rdma.ConnectionsMade, m.made)
	add(rdma.PeersKnown, uint64(len(m.peers)))
	add(rdma.MemoryPeers, uint64(len(m.peers))*meshPeerBytes)
}

// meshPeerBytes is the approximate memory of a peer without its connection, with its address
// and the entries of both tables.
var meshPeerBytes = sizeOf[meshPeer]() + uint64(reflect.TypeFor[*meshPeer]().Size()) + 96

// explain returns why a read of the socket has ended the connection. err is nil if the peer
// has closed it.
func (q *queuePair) explain(err error) error {
	var late interface{ Timeout() bool }
	switch {
	case err == nil:
		return errors.New("it has closed the connection: its process has ended, or it has failed")
	case errors.As(err, &late) && late.Timeout(), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		// The kernel reports a route that is missing when it gives up, and not before.
		return &rdma.SilenceError{For: q.dev.cfg.timeout()}
	case wasReset(err):
		return fmt.Errorf("the TCP connection was reset (%w), and messages may be lost: its process has ended, or something between the hosts resets connections; "+
			"channel hybrid replaces connections that break", err)
	}
	return fmt.Errorf("the TCP connection failed: %w", err)
}

// explainFault returns why a segment of the peer has ended the connection.
func explainFault(f ddp.Fault) error {
	if f.Access() {
		return errors.New("it has tried to access memory of this process without permission, which ends its connection (RFC 5040 section 5.4); " +
			"check that it runs the same program, and who started it")
	}
	return fmt.Errorf("it has sent what the protocol forbids (%v), which ends its connection (RFC 5040 section 5.4)", f)
}
