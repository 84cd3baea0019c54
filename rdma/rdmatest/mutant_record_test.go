package rdmatest

import "github.com/muster-mpi/muster/rdma"

// recordMutants returns devices with faulty Write-Records.
func recordMutants() []mutant {
	each := func(fn func(wr *rdma.SendWR)) func(rdma.Device) mutation {
		return func(rdma.Device) mutation {
			return mutation{post: func(q rdma.QP, wrs []rdma.SendWR) (int, error) {
				for i := range wrs {
					if wr := wrs[i]; wr.Op == rdma.OpWriteRecord {
						fn(&wr)
						wrs[i] = wr
					}
				}
				return q.PostSend(wrs)
			}}
		}
	}
	return []mutant{
		{"places a Write-Record one byte off", each(func(wr *rdma.SendWR) { wr.Remote++ }), []string{"record-moves"}},
		{"reports bytes that have not arrived", each(func(wr *rdma.SendWR) {
			if n := wr.Body.Len(); n > 1 {
				b := append([]byte(nil), wr.Body.Bytes()...)
				b[n-1] ^= 1
				wr.Body = rdma.MemOf(b)
			}
		}), []string{"record-moves"}},
		{"forgets which Write-Record has arrived", eachCompletion(func(c *rdma.Completion) bool {
			if c.Op == rdma.OpRecord {
				c.ID = 0
			}
			return true
		}), []string{"record-moves"}},
		{"does not report refusals", eachCompletion(func(c *rdma.Completion) bool { return c.Op != rdma.OpRefused }), []string{"record-refused"}},
		{"gives no reason for a refusal", eachCompletion(func(c *rdma.Completion) bool {
			if c.Op == rdma.OpRefused {
				c.Status = rdma.StatusFault
			}
			return true
		}), []string{"record-refused"}},
	}
}
