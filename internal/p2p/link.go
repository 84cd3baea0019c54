package p2p

import "github.com/muster-mpi/muster/rdma"

// Link is what a rank keeps for a peer it has talked to; nothing is kept for the
// others. The shell makes it on first use.
type Link struct {
	Rank int           // world rank of the peer
	Host string        // for errors
	Peer rdma.PeerID   // the device's handle for it
	Dev  int           // the shell's number of the device
	Attr *rdma.Attr    // of that device
	QP   rdma.QP       // the shell's: where packets are posted
	Err  error         // set when the peer is gone
	Open bool          // the shell's: packets can be posted
	Wait []rdma.SendWR // the shell's: packets the device had no room for, in order

	sendSeq uint32
	recvSeq uint32

	choice   []choice // by size, from the protocols' costs
	eagerMax int      // cached from choice for standard mode, -1 for none
	segment  int      // data bytes in one packet
	oneMax   int      // largest message that SendOne takes; -1 for none, as while there are offers
	nowMax   int      // largest that SendNow takes
	copyMin  int      // messages of one packet from this length on are sent from where they are
	// sourceMin is the length from which Sources is asked (source.go), MaxSize for never.
	sourceMin int
	stageMax  int // the length up to which it is asked for puts and gets (stage.go), 0 for never

	// Credit bounds what a receiver must hold for messages it has not asked
	// for. It is counted in bytes of eager data that the peer has not yet
	// consumed; at the limit a send falls back to rendezvous, which holds no
	// data, so it can neither block nor deadlock.
	credit   int64
	consumed int64 // receiving side: not yet told to the peer
	granted  int64 // receiving side: what the peer has, with what is consumed or kept here
	wants    bool  // receiving side: it has wanted more than the first

	held    []heldPacket // came too early, in the order of their numbers
	partial []partial    // eager messages whose segments are coming

	// Speculation. As a receiver: how many offers of ours are open. As a sender:
	// what the receiver has offered, and the envelopes of the latest messages.
	offered int
	offers  []offer
	in      *ringIn  // what the peer writes packets into, nil if it has not earned it
	out     *ringOut // and we at the peer
	recent  *recent  // nil until the peer has offered something
	Stats   LinkStats
	device  *device // last: nothing of it is needed for a short message
}

// LinkStats counts what a link did.
type LinkStats struct {
	Sent, Received     uint64 // messages
	BytesSent, BytesRx uint64
	Unexpected         uint64 // messages that came before their receive
	ByProtocol         [protocolSlots]uint64
	NoCredit           uint64 // eager sends that had to become a rendezvous
	Held, Duplicates   uint64 // packets out of order, and doubled
	ControlBytes       uint64 // sent in packets without data
	// Packets that went into the peer's ring, and came by ours.
	RingSent, RingReceived uint64

	// Speculation, as the receiver: RTRs that were sent, that the sender has
	// used, that it had no use for, that we took back; and those that were not
	// sent because too few are used.
	RTRSent, RTRUsed, RTRWasted, RTRRevoked, RTRStopped uint64
	// As the sender: RTRs that came too late, and messages written by RTR.
	RTRStale, SpecSent uint64
}

type heldPacket struct {
	seq uint32
	pkt []byte
}

// partial is an eager message of which more segments are to come. It goes either
// to a receive or, while that is missing, to a Msg.
type partial struct {
	first         uint32 // sequence number of its first packet
	filled, total int    // bytes
	x             *Xfer
	msg           *Msg
}

// eagerCharge is what a message costs in credit beyond its data: the receiver's
// bookkeeping for it.
const eagerCharge = 128

// SetPeer notes the device's handle for the peer, which may be learnt only when the
// link is opened.
func (l *Link) SetPeer(peer rdma.PeerID) {
	l.Peer = peer
}

// fail gives the peer up: nothing is sent to it any more.
func (l *Link) fail(err error) {
	l.Err = err
	l.eagerMax, l.nowMax, l.oneMax = -1, -1, -1 // SendNow and SendOne look at these alone
}
