package advise

// Ports: messages between two hosts pass the port of each, one after the other in either
// direction. How long a byte takes is learned from the trace: it is what ports have at most
// passed while messages were under way.

import (
	"cmp"
	"slices"
)

// ports are when the ports of each host are free again, by direction.
type ports struct{ out, in []float64 }

func newPorts(hosts int) ports { return ports{make([]float64, hosts), make([]float64, hosts)} }

// pass returns when a transfer that is ready at a time has passed the ports.
func (p *ports) pass(x *transfer, at float64) float64 {
	if x.from == x.to || x.onPort == 0 {
		return at
	}
	p.out[x.from] = max(p.out[x.from], at) + x.onPort
	p.in[x.to] = max(p.out[x.from], p.in[x.to]+x.onPort)
	return p.in[x.to]
}

// countHosts returns one more than the largest number of a host.
func (w *whatIf) countHosts() int { return slices.Max(append([]int{0}, w.hosts...)) + 1 }

// passRecorded returns when each recorded transfer has passed the ports.
func (w *whatIf) passRecorded() []float64 {
	order, passed := make([]int32, len(w.transfers)), make([]float64, len(w.transfers))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(w.ready(&w.transfers[a]), w.ready(&w.transfers[b]))
	})
	p := newPorts(w.countHosts())
	for _, i := range order {
		passed[i] = p.pass(&w.transfers[i], float64(w.ready(&w.transfers[i])))
	}
	return passed
}

// underway is when a port had messages under way without a pause, and how many bytes.
type underway struct{ from, to, bytes float64 }

// fullPort is the share of the bytes with a lower rate than that of the ports. The fastest are
// chance: a clock that is wrong, a message that began before it was recorded.
const fullPort = 0.9

// portTime returns the time of a byte on a port, or 0 if the trace does not show it.
func (w *whatIf) portTime() float64 {
	byPort := make([][]underway, 2*w.countHosts())
	for _, m := range w.Messages {
		done, bytes := w.event(w.completing(m.Recv)), w.event(m.Send).Bytes
		ready := max(w.event(m.Send).Begin, w.event(w.startOf(m)).Begin)
		from, to := w.hosts[m.Send.Rank], w.hosts[m.Recv.Rank]
		if from == to || bytes < longMessage || ready >= done.End {
			continue
		}
		u := underway{float64(ready), float64(done.End), float64(bytes)}
		byPort[2*from], byPort[2*to+1] = append(byPort[2*from], u), append(byPort[2*to+1], u)
	}
	var all []underway
	total := 0.0
	for _, list := range byPort {
		slices.SortFunc(list, func(a, b underway) int { return cmp.Compare(a.from, b.from) })
		for i, u := range list {
			total += u.bytes
			if i > 0 && u.from <= all[len(all)-1].to {
				last := &all[len(all)-1]
				last.to, last.bytes = max(last.to, u.to), last.bytes+u.bytes
			} else {
				all = append(all, u)
			}
		}
	}
	perByte := func(u underway) float64 { return (u.to - u.from) / u.bytes }
	slices.SortFunc(all, func(a, b underway) int { return cmp.Compare(perByte(b), perByte(a)) })
	below := 0.0
	for _, u := range all {
		if below += u.bytes; below >= fullPort*total {
			return perByte(u)
		}
	}
	return 0
}
