package rdmatest

import "github.com/muster-mpi/muster/rdma"

// record carries out a Write-Record. The reference loses none: it is placed whole or
// refused, and its origin learns of a refusal after the completion.
func (q *refQP) record(wr *rdma.SendWR, to *refQP) {
	if wr.Flags&rdma.Inline == 0 {
		q.outstanding++
		q.finish(wr, to, rdma.StatusOK, wr.Body.Len())
	}
	if to.closed {
		return // a datagram to a closed queue pair is lost
	}
	var theirs []byte
	if wr.Body.Len() > 0 {
		var ok bool
		if _, theirs, ok = to.dev.reach(wr.RKey, wr.Remote, wr.Body.Len(), rdma.RemoteWrite); !ok {
			q.sendCQ.ready = append(q.sendCQ.ready, refEntry{c: rdma.Completion{ID: wr.ID, Op: rdma.OpRefused, Peer: q.dev.handle(to), Status: rdma.StatusRemoteAccess}})
			q.sendCQ.signal()
			return
		}
	}
	copy(theirs, wr.Body.Bytes())
	done := rdma.Completion{ID: wr.ID, Op: rdma.OpRecord, Peer: to.dev.handle(q), Data: rdma.MemOf(theirs), Len: uint64(len(theirs))}
	to.recvCQ.ready = append(to.recvCQ.ready, refEntry{c: done})
	to.recvCQ.signal()
}
