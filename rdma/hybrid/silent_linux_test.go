package hybrid

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// TestSilentPeerIsReported: a peer stops answering, as if its network were down. A user
// that has sent to it inline, and then only receives, is notified after the timeout, with
// an error that does not claim more than is known.
func TestSilentPeerIsReported(t *testing.T) {
	const timeout = 300 * time.Millisecond
	nodes := newNodes(t, 2, Config{PeerTimeout: timeout, NoThread: true})
	a := nodes[0]
	begin := time.Now() // before the silence begins
	a.send(1)
	until(t, "the silence is reported", nodes[:1], func() bool { return len(a.bad) == 2 })
	if took := time.Since(begin); took < timeout || took > timeout+5*time.Second {
		t.Errorf("it is reported after %v, the timeout is %v", took, timeout)
	}
	for i, op := range []rdma.Op{rdma.OpSend, rdma.OpDisconnected} {
		if c := a.bad[i]; c.Op != op || c.Peer != a.peers[1] || c.Status != rdma.StatusPeerGone {
			t.Errorf("a completion %+v", c)
		}
	}
	err := a.dev.Explain(a.peers[1])
	if err == nil {
		t.Fatal("the device does not explain it")
	}
	var silence time.Duration
	if words := strings.Fields(err.Error()); len(words) > 4 {
		silence, _ = time.ParseDuration(strings.TrimRight(words[4], ":;"))
	}
	if silence < timeout || silence > timeout+5*time.Second {
		t.Errorf("the explanation speaks of %v of silence, the timeout is %v: %v", silence, timeout, err)
	}
	for _, want := range []string{"nothing was heard for", "its process, its host or the network", "MUSTER_PEER_TIMEOUT"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the explanation does not contain %q: %v", want, err)
		}
	}
}
