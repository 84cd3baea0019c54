package dgram

import "github.com/muster-mpi/muster/rdma"

// peer is everything that a queue pair keeps of another one on RD: both halves of
// the conversation. What only a busy peer needs hangs on pointers and goes back
// when it is idle, so that ten thousand idle peers fit into five megabytes.
type peer struct {
	sender
	receiver
	stash      *stash   // datagrams that came and could not be delivered yet
	join       *joining // the message of which a part was delivered
	sendNumber uint32   // MSN of the next message to it (RFC 5041 section 5.1.2)
	recvNumber uint32   // MSN of the next message from it
	id         rdma.PeerID
	busy       bool // in the list of its queue pair
}

func newPeer(h *hangar, mss int) peer {
	return peer{sender: newSender(h, mss), sendNumber: 1, recvNumber: 1}
}

// resting tells whether nothing is to be done for it.
func (p *peer) resting() bool {
	return p.sender.idle() && p.owed == 0 && !p.waiting()
}

// joining is a message of several datagrams on its way in.
type joining struct {
	recv    rdma.RecvWR
	got     int
	tooLong bool
}
