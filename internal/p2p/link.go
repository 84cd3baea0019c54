package p2p

import "github.com/muster-mpi/muster/rdma"

// Link is the state of a peer that the rank communicates with. The engine creates it on
// first use; there is none for other peers.
type Link struct {
	Rank int           // world rank of the peer
	Host string        // for errors
	Peer rdma.PeerID   // the device's handle of the peer
	Dev  int           // the engine's index of the device
	Attr *rdma.Attr    // attributes of that device
	QP   rdma.QP       // engine: queue pair for packets
	Err  error         // set when the peer has failed
	Open bool          // engine: packets can be posted
	Wait []rdma.SendWR // engine: packets that the device has not accepted yet, in order

	sendSeq uint32
	recvSeq uint32

	routes
	linkCredit

	held    []heldPacket // packets that arrived early, by sequence number
	partial []partial    // eager messages with segments still to come

	// Speculation. offered counts our open offers as a receiver; offers are those of
	// the peer.
	offered int
	offers  []offer
	in      *ringIn  // ring that the peer writes packets into, or nil
	out     *ringOut // ring that we write packets into, or nil
	recent  *recent  // envelopes of the latest messages; nil until the first offer
	Stats   LinkStats
	device  *device // last: not used for short messages
}

// LinkStats counts the traffic of a link.
type LinkStats struct {
	Sent, Received     uint64 // messages
	BytesSent, BytesRx uint64
	Unexpected         uint64 // messages that arrived before their receive
	ByProtocol         [protocolSlots]uint64
	NoCredit           uint64 // eager sends turned into a rendezvous for lack of credit
	Held, Duplicates   uint64 // packets received out of order, and twice
	ControlBytes       uint64 // bytes of control packets sent
	// Packets sent by the peer's ring, those of them from the user's buffer, and packets
	// received by ours.
	RingSent, RingDirect, RingReceived uint64

	// Speculation, as the receiver: RTRs sent, used by the sender, not used, revoked,
	// and not sent because too few are used.
	RTRSent, RTRUsed, RTRWasted, RTRRevoked, RTRStopped uint64
	// Speculation, as the sender: RTRs that arrived too late, and messages written by RTR.
	RTRStale, SpecSent uint64
}

// heldPacket is a packet that arrived before its predecessors.
type heldPacket struct {
	seq uint32
	pkt []byte
}

// partial is an eager message with segments still to come. Its data goes to a receive, or
// to a Msg until there is one.
type partial struct {
	first         uint32 // sequence number of its first packet
	filled, total int    // bytes
	x             *Xfer
	msg           *Msg
}

// eagerCharge is the credit that a message costs beyond its data, for the receiver's
// bookkeeping.
const eagerCharge = 128

// SetPeer sets the device's handle of the peer, which may become known only when the link
// is opened.
func (l *Link) SetPeer(peer rdma.PeerID) {
	l.Peer = peer
}

// fail marks the peer as failed: nothing more is sent to it.
func (l *Link) fail(err error) {
	l.Err = err
	l.eagerMax, l.nowMax, l.oneMax = -1, -1, -1 // SendNow and SendOne check only these
}
