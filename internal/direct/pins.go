package direct

import "runtime"

// Pins pins the objects whose words the front uses, for as long as the process runs: C may
// keep pointers into Go memory that is pinned (documentation of cgo, "Passing pointers"). A
// pointer to a word leads C to that word only, not to the rest of its object.
type Pins struct {
	pinner runtime.Pinner
	pinned map[any]bool
}

// Pin pins objects, given by pointers, once each.
func (p *Pins) Pin(objects ...any) {
	if p.pinned == nil {
		p.pinned = make(map[any]bool)
	}
	for _, o := range objects {
		if !p.pinned[o] {
			p.pinned[o] = true
			p.pinner.Pin(o)
		}
	}
}
