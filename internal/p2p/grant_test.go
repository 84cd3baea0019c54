package p2p

import (
	"errors"
	"testing"
)

// converge lets ranks 1 to n announce a message each to rank 0, whose receives share grants.
func converge(t *testing.T, rendezvous string, n, bytes, limit int) (j *job, g *Grants, recvs, sends []*Xfer) {
	j, g = newJob(t, n+1, Config{EagerLimit: 64, Rendezvous: rendezvous}, 0), &Grants{Limit: limit}
	for from := 1; from <= n; from++ {
		nd := j.nodes[0]
		r := nd.m.New()
		r.Buf, r.Source, r.Tag, r.Link, r.Grants = nd.mem.buffer(bytes), int32(from), 5, nd.links[from], g
		recvs = append(recvs, j.start(0, r))

		nd = j.nodes[from]
		s := nd.m.New()
		s.Buf, s.Link, s.Source, s.Tag, s.Owner = nd.mem.buffer(bytes), nd.links[0], int32(from), 5, &Waiter{}
		for i := range s.Buf {
			s.Buf[i] = 6
		}
		nd.m.SendAnnounced(s)
		j.settle(from)
		j.deliver(from, 0, 0) // the RTS
		sends = append(sends, s)
	}
	return j, g, recvs, sends
}

// As many transfers start as the limit permits, at least two, although the messages are short
// enough to be sent at once, and all are complete in the end.
func TestGrantsBoundTransfers(t *testing.T) {
	for _, rendezvous := range []string{"get", "put"} {
		for limit, want := range map[int]int{10: 2, 40: 2, 60: 3, 1000: 6} {
			j, g, recvs, sends := converge(t, rendezvous, 6, 20, limit)
			if started := 6 - len(g.waiting); started != want || g.count != want || g.bytes != 20*want {
				t.Fatalf("%s, limit %d: %d transfers of %d bytes have started, %d do not wait, want %d", rendezvous, limit, g.count, g.bytes, started, want)
			}
			for _, r := range recvs[want:] {
				j.pending(r, "matched", "it waits for others")
			}
			j.drain()
			for i := range recvs {
				j.got(recvs[i], i+1, 5, 20, rendezvous)
				j.sent(sends[i], rendezvous)
			}
			if g.count != 0 || g.bytes != 0 || len(g.waiting) != 0 {
				t.Fatalf("%s: %+v is left", rendezvous, g)
			}
			j.clean()
		}
	}
}

// A peer that fails makes room for the others, whether its transfer had started or waited.
func TestGrantsOfFailedPeer(t *testing.T) {
	for _, rendezvous := range []string{"get", "put"} {
		for _, dead := range []int{1, 4} {
			j, g, recvs, _ := converge(t, rendezvous, 4, 20, 10)
			m := j.nodes[0].m
			m.FailLink(j.nodes[0].links[dead], errors.New("it has failed"))
			j.settle(0)
			j.drain()
			for i, r := range recvs {
				if i+1 == dead {
					if !r.Done() || r.Err == nil {
						t.Fatalf("%s: the receive from the failed rank is in stage %s", rendezvous, r.Stage())
					}
					continue
				}
				j.got(r, i+1, 5, 20, rendezvous)
			}
			if g.count != 0 || g.bytes != 0 || len(g.waiting) != 0 {
				t.Fatalf("%s: %+v is left", rendezvous, g)
			}
		}
	}
}
