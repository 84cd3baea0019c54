package rdmatest

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Mutants of SolicitedCQ.

func (c *mutantCQ) ArmSolicited() bool {
	inner := c.CQ.(rdma.SolicitedCQ)
	if c.b.arm != nil {
		return c.b.arm(inner)
	}
	return inner.ArmSolicited()
}

func (c *mutantCQ) Disarm() {
	if !c.b.noDisarm {
		c.CQ.(rdma.SolicitedCQ).Disarm()
	}
}

func (c *mutantCQ) Beside(on bool) { c.CQ.(rdma.SolicitedCQ).Beside(on) }

func (c *mutantCQ) WaitSolicited(d time.Duration) error {
	inner := c.CQ.(rdma.SolicitedCQ)
	if c.b.waitSolicited != nil {
		return c.b.waitSolicited(inner, d)
	}
	return inner.WaitSolicited(d)
}

func solicitedMutants() []mutant {
	return []mutant{
		{"does not wake for solicited messages", func(rdma.Device) mutation {
			return mutation{waitSolicited: func(_ rdma.SolicitedCQ, d time.Duration) error { time.Sleep(d); return nil }}
		}, []string{"solicited-wakes", "solicited-loses-no-message"}},
		{"arms although a message has arrived", func(rdma.Device) mutation {
			return mutation{arm: func(cq rdma.SolicitedCQ) bool { cq.ArmSolicited(); return true }}
		}, []string{"solicited-arm-if-ready"}},
		{"treats every message as solicited", eachSend(func(_ int, wr rdma.SendWR) []rdma.SendWR {
			wr.Flags |= rdma.Solicited
			return []rdma.SendWR{wr}
		}), []string{"solicited-only"}},
		{"cannot be disarmed", func(rdma.Device) mutation { return mutation{noDisarm: true} }, []string{"solicited-only"}},
		{"wakes only one of two waiters", func(rdma.Device) mutation {
			return mutation{wait: func(cq rdma.CQ, d time.Duration) error { return cq.(rdma.SolicitedCQ).WaitSolicited(d) }}
		}, []string{"solicited-beside-wait"}},
	}
}
