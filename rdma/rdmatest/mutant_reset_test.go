package rdmatest

import "github.com/muster-mpi/muster/rdma"

// resetMutants returns devices that lose messages after a reset.
func resetMutants() []mutant {
	// deaf drops what is posted after a reset. The first device reports the reset if asked
	// to.
	deaf := func(report bool) func(rdma.Device) mutation {
		first := true
		return func(rdma.Device) mutation {
			dead, reports := false, report && first
			first = false
			return mutation{
				reset: func() { dead = true },
				post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
					if dead {
						return len(wrs), nil
					}
					return q.PostSend(wrs)
				},
				poll: func(cq rdma.CQ, out []rdma.Completion) int {
					if dead && reports && len(out) > 0 {
						reports = false
						out[0] = rdma.Completion{Op: rdma.OpDisconnected, Peer: 1, Status: rdma.StatusPeerGone}
						return 1
					}
					return cq.Poll(out)
				},
			}
		}
	}
	found := []string{"reset-while-receiving"}
	return []mutant{
		{"loses messages after a reset without reporting it", deaf(false), found},
		{"reports a reset to one side only and loses messages", deaf(true), found},
	}
}
