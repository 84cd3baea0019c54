package dgram

// peer is everything that a queue pair keeps of another one on RD: both halves of
// the conversation. What only a busy peer needs hangs on pointers and goes back
// when it is idle, so that ten thousand idle peers fit into five megabytes.
type peer struct {
	sender
	receiver
}

func newPeer(h *hangar, mss int) peer { return peer{sender: newSender(h, mss)} }
