package sim

import "github.com/muster-mpi/muster/internal/coll"

// Choose returns the algorithm that the cost model of programs (internal/coll) selects for a
// call on the machine.
func (m *Machine) Choose(s *coll.Shape) (coll.Choice, error) {
	perByte := func(l *Level) float64 {
		return max(l.O.At(1<<20)-l.O.At(8<<10), 0)/(1<<20-8<<10) + l.G
	}
	model := coll.Model{Startup: (m.Near.L + 2*m.Near.O.At(8)) * 1e-9, PerByte: perByte(&m.Near) * 1e-9, Copy: m.Copy * 1e-9, Reduce: m.Reduce * 1e-9, Ports: 1}
	if s.Nodes != nil {
		model.Near = coll.Near{Startup: model.Startup, PerByte: model.PerByte}
		model.Startup, model.PerByte = (m.Far.L+2*m.Far.O.At(8))*1e-9, perByte(&m.Far)*1e-9
		model.Ports, model.Eager, model.Stripe, model.Cable = m.Rails, m.Far.Eager, m.Stripe, m.Far.G*1e-9
		model.TimeSlices = s.Size*max(m.NodesPerHost, 1) > m.Cores*s.Nodes.Nodes()
		model.Message = 2 * m.Far.O.At(8) * 1e-9
	}
	return coll.Choose(s, &model, nil)
}
