package soft

import "testing"

// TestFirstPath checks that both ends begin on the same path, and that the pairs of hosts
// with four ranks each divide evenly among two: all pairs of a host, and those of ranks at
// the same place, which exchange messages in algorithms by columns.
func TestFirstPath(t *testing.T) {
	const hosts, ranks = 4, 4
	for host := range hosts {
		var all, column [2]int
		for other := range hosts {
			if other == host {
				continue
			}
			for i := range ranks {
				for j := range ranks {
					a, b := uint32(ranks*host+i), uint32(ranks*other+j)
					on := firstPath(a, b, 2)
					if back := firstPath(b, a, 2); back != on {
						t.Errorf("ranks %d and %d begin on paths %d and %d", a, b, on, back)
					}
					all[on]++
					if i == j {
						column[on]++
					}
				}
			}
		}
		if min(all[0], all[1]) < 16 || min(column[0], column[1]) < 4 {
			t.Errorf("host %d: %v of its pairs begin on each path, and %v of the columns", host, all, column)
		}
	}
	if on := firstPath(0, 0, 2); on != 0 {
		t.Errorf("processes without names begin on path %d", on)
	}
}
