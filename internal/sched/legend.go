package sched

// The legend of a picture. It explains only marks that the picture contains.

import "fmt"

type legendEntry struct {
	mark func(s *svg, x, y float64)
	text string
}

func (s *svg) legendOf() []legendEntry {
	var list []legendEntry
	ports, kinds := 0, map[Kind]bool{}
	for _, g := range s.graphs {
		for _, op := range g.Ops {
			kinds[op.Kind] = kinds[op.Kind] || op.Dst.Len > 0
		}
	}
	for _, st := range s.stages {
		for _, parcels := range st.parcels {
			ports = max(ports, len(parcels))
		}
	}
	if ports > 0 {
		text := "a message and what is in it"
		if ports > 1 {
			text += fmt.Sprintf("; colours count what a rank sends in one step (up to %d)", ports)
		}
		list = append(list, legendEntry{func(s *svg, x, y float64) {
			for i := range min(ports, 4) {
				s.printf(`<path class="arrow" stroke="%s" marker-end="url(#head%d)" d="M%.1f %.1fv14"/>`+"\n", portColours[i], i, x+6+float64(i)*12, y-2)
			}
		}, text})
	}
	cell := func(class string) func(*svg, float64, float64) {
		return func(s *svg, x, y float64) {
			s.printf(`<rect class="cell %s" x="%.1f" y="%.1f" width="46" height="12" rx="2"/>`+"\n", class, x, y-1)
		}
	}
	for _, k := range []struct {
		kind Kind
		text string
	}{{Recv, "received in this step"}, {Copy, "copied in this step"}, {Reduce, "combined in this step"}} {
		if kinds[k.kind] {
			list = append(list, legendEntry{cell(k.kind.String()), k.text})
		}
	}
	if kinds[Recv] || kinds[Copy] || kinds[Reduce] {
		list = append(list, legendEntry{cell("kept"), "there before"})
	}
	for _, t := range s.names.explain(kinds[Reduce]) {
		list = append(list, legendEntry{func(s *svg, x, y float64) { s.text(x+23, y+9, "", t[0]) }, t[1]})
	}
	return list
}

// explain returns examples of labels and their meanings.
func (n *naming) explain(reduces bool) [][2]string {
	var list [][2]string
	last := min(n.ranks-1, 2)
	switch {
	case n.origins == 0:
		return nil
	case n.origins == 1 && n.numbered:
		list = append(list, [2]string{fmt.Sprint(last), fmt.Sprintf("the block for rank %d", last)})
	case n.origins == 1 && len(n.ends) > 0:
		list = append(list, [2]string{n.part(0), "a part of the data"})
	case n.origins == 1:
		list = append(list, [2]string{"data", "the data of the root"})
	case n.numbered:
		list = append(list, [2]string{n.text(phrase{[]int{0}, 1, last, last}), fmt.Sprintf("the block of rank 0 for rank %d", last)})
	case len(n.ends) > 0:
		list = append(list, [2]string{n.text(phrase{[]int{last}, 1, 0, 0}), fmt.Sprintf("part %s of the data of rank %d", n.part(0), last)})
	default:
		list = append(list, [2]string{fmt.Sprint(last), fmt.Sprintf("the data of rank %d", last)})
	}
	if reduces && n.ranks > 1 {
		list = append(list, [2]string{"Σ", "the data of all ranks, combined"})
		if n.ranks > 2 {
			list = append(list, [2]string{"Σ0–1", "those of ranks 0 and 1"})
		}
	}
	return list
}

func (s *svg) writeLegend() {
	y := s.stages[len(s.stages)-1].bottom + 10
	s.printf(`<line class="rule" x1="20" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", y-8, s.width-20, y-8)
	for _, e := range s.legend {
		y += 18
		e.mark(s, 20, y-12)
		s.text(78, y-2, "left", e.text)
	}
}
