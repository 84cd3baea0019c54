package rdmatest

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Mutants of the waits of a second goroutine.

func (c *mutantCQ) Arm(on rdma.Notify, limit time.Duration) time.Duration {
	if c.b.arm != nil {
		return c.b.arm(c.CQ, on, limit)
	}
	return c.CQ.Arm(on, limit)
}

func (c *mutantCQ) Disarm() {
	if !c.b.noDisarm {
		c.CQ.Disarm()
	}
}

func (c *mutantCQ) SetBeside(on bool) { c.CQ.SetBeside(on && !c.b.noBeside) }

func (c *mutantCQ) WaitArmed(d time.Duration) error {
	if c.b.waitArmed != nil {
		return c.b.waitArmed(c.CQ, d)
	}
	return c.CQ.WaitArmed(d)
}

func notifyMutants() []mutant {
	return []mutant{
		{"does not wake for solicited messages", func(rdma.Device) mutation {
			return mutation{waitArmed: func(_ rdma.CQ, d time.Duration) error { time.Sleep(d); return nil }}
		}, []string{"solicited-wakes", "solicited-loses-no-message", "notify-wakes", "notify-loses-no-message"}},
		{"wakes only for solicited messages", func(rdma.Device) mutation {
			return mutation{arm: func(cq rdma.CQ, _ rdma.Notify, limit time.Duration) time.Duration {
				return cq.Arm(rdma.NotifySolicited, limit)
			}}
		}, []string{"notify-wakes"}},
		{"arms although a message has arrived", func(rdma.Device) mutation {
			return mutation{arm: func(cq rdma.CQ, on rdma.Notify, limit time.Duration) time.Duration {
				cq.Arm(on, limit)
				return limit
			}}
		}, []string{"solicited-arm-if-ready", "notify-arm-if-ready"}},
		{"ends the lending beside the application", func(rdma.Device) mutation { return mutation{noBeside: true} }, []string{"beside-keeps-lent"}},
		{"treats every message as solicited", eachSend(func(_ int, wr rdma.SendWR) []rdma.SendWR {
			wr.Flags |= rdma.Solicited
			return []rdma.SendWR{wr}
		}), []string{"solicited-only"}},
		{"cannot be disarmed", func(rdma.Device) mutation { return mutation{noDisarm: true} }, []string{"solicited-only"}},
		{"wakes only one of two waiters", func(rdma.Device) mutation {
			return mutation{wait: func(cq rdma.CQ, d time.Duration) error { return cq.WaitArmed(d) }}
		}, []string{"solicited-beside-wait", "notify-beside-wait"}},
	}
}
