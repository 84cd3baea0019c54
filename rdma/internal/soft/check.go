package soft

import (
	"fmt"
	"strings"

	"github.com/muster-mpi/muster/rdma"
)

// owned is a CQ or SRQ of a device, or a type that embeds one.
type owned interface {
	comparable
	owner() *Device
}

func (r *SRQ) owner() *Device { return r.dev }

// QueuesOf returns the queues of a queue pair that is to be made, as the device's own
// types C and R. srq is nil if there is none. types are the transports that the device
// has.
func QueuesOf[C, R owned](d *Device, cfg *rdma.QPConfig, types rdma.Transport) (send, recv C, srq R, err error) {
	if d.Closed {
		return send, recv, srq, rdma.ErrClosed
	}
	if cfg.Type&types == 0 || cfg.Type&(cfg.Type-1) != 0 {
		return send, recv, srq, fmt.Errorf("%s: queue pairs of this device are of type %s: %w", d.name, names(types), rdma.ErrUnsupported)
	}
	send, okSend := cfg.SendCQ.(C)
	recv, okRecv := cfg.RecvCQ.(C)
	if !okSend || !okRecv || send.owner() != d || recv.owner() != d {
		return send, recv, srq, fmt.Errorf("%s: QPConfig.SendCQ and RecvCQ must be made by the same device as the queue pair, not %T and %T of others", d.name, cfg.SendCQ, cfg.RecvCQ)
	}
	if cfg.SRQ != nil {
		var ok bool
		if srq, ok = cfg.SRQ.(R); !ok || srq.owner() != d {
			return send, recv, srq, fmt.Errorf("%s: QPConfig.SRQ must be made by the same device as the queue pair, not a %T of another", d.name, cfg.SRQ)
		}
	}
	return send, recv, srq, nil
}

func names(types rdma.Transport) string {
	var list []string
	for i, name := range []string{"RC", "RD", "UD"} {
		if types>>i&1 != 0 {
			list = append(list, name)
		}
	}
	return strings.Join(list, " or ")
}

// CheckSend rejects a request that the device can never accept. a are its attributes.
func (d *Device) CheckSend(wr *rdma.SendWR, a *rdma.Attr) error {
	if err := CheckSend(d.name, wr, a); err != nil || !d.strict || wr.Flags&rdma.Inline != 0 {
		return err
	}
	return d.CheckLocal(wr.Op.String(), wr.Body, wr.LKey)
}

// CheckSend rejects a request that a device with these attributes can never accept.
func CheckSend(name string, wr *rdma.SendWR, a *rdma.Attr) error {
	length := int(wr.HeadLen) + wr.Body.Len()
	switch {
	case !a.Ops.Has(wr.Op):
		return fmt.Errorf("%s: operation %v for peer %d: %w", name, wr.Op, wr.Peer, rdma.ErrUnsupported)
	case wr.HeadLen > rdma.HeadMax:
		return fmt.Errorf("%s: a head of %d bytes for peer %d is longer than %d", name, wr.HeadLen, wr.Peer, rdma.HeadMax)
	case wr.Op == rdma.OpSend && length > a.MaxSend:
		return fmt.Errorf("%s: a message of %d bytes for peer %d is longer than Attr.MaxSend, %d; split it", name, length, wr.Peer, a.MaxSend)
	case wr.Op != rdma.OpSend && a.MaxTransfer > 0 && wr.Body.Len() > a.MaxTransfer:
		return fmt.Errorf("%s: a %v of %d bytes at peer %d is longer than Attr.MaxTransfer, %d; split it", name, wr.Op, wr.Body.Len(), wr.Peer, a.MaxTransfer)
	case wr.Flags&rdma.Inline != 0 && wr.Op != rdma.OpRead && wr.Body.Len() > a.MaxInline:
		return fmt.Errorf("%s: an inline body of %d bytes for peer %d is longer than Attr.MaxInline, %d; send it without Inline", name, wr.Body.Len(), wr.Peer, a.MaxInline)
	}
	return nil
}
