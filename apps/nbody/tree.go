package nbody

import "math"

// maxDepth ends the division of cubes that hold two points at the same position.
const maxDepth = 40

// tree is an octree. A node is a leaf with at most one point, or has up to eight children
// that come after it in nodes.
type tree struct{ nodes []node }

type node struct {
	center   vector // of the cube
	half     float64
	point    // of a leaf, or the mass of all below at their center of mass
	divided  bool
	children [8]int32 // index in nodes, 0 if there is none
}

// build makes the tree of some points, all of which are in the box.
func (t *tree) build(b box, sets ...[]point) {
	t.nodes = t.nodes[:0]
	var root node
	for d := range root.center {
		root.center[d] = (b.Low[d] + b.High[d]) / 2
		root.half = max(root.half, (b.High[d]-b.Low[d])/2)
	}
	t.nodes = append(t.nodes, root)
	for _, points := range sets {
		for _, p := range points {
			t.insert(p)
		}
	}
	for i := len(t.nodes) - 1; i >= 0; i-- {
		if n := &t.nodes[i]; n.divided {
			for _, child := range n.children {
				if child != 0 {
					n.point = n.add(t.nodes[child].point)
				}
			}
		}
	}
}

func (t *tree) insert(p point) {
	at := int32(0)
	for depth := 0; ; depth++ {
		n := &t.nodes[at]
		if !n.divided {
			if n.mass == 0 || depth == maxDepth {
				n.point = n.add(p)
				return
			}
			old := n.point
			n.point, n.divided = point{}, true
			t.nodes[t.child(at, old.at)].point = old
		}
		at = t.child(at, p.at)
	}
}

// child returns the child of a node for a position, and adds it if it is not there.
func (t *tree) child(parent int32, at vector) int32 {
	n := &t.nodes[parent]
	next := node{half: n.half / 2}
	octant := 0
	for d, center := range n.center {
		if at[d] >= center {
			octant |= 1 << d
			next.center[d] = center + next.half
		} else {
			next.center[d] = center - next.half
		}
	}
	if n.children[octant] == 0 {
		n.children[octant] = int32(len(t.nodes))
		t.nodes = append(t.nodes, next)
	}
	return t.nodes[parent].children[octant]
}

// add returns the sum of two masses at their center.
func (p point) add(q point) point {
	mass := p.mass + q.mass
	var sum point
	sum.mass = mass
	for d := range sum.at {
		sum.at[d] = (p.mass*p.at[d] + q.mass*q.at[d]) / mass
	}
	return sum
}

// attraction returns the acceleration and the potential at a position, and the number of
// masses that it comes from. A mass at the position itself is a star that does not attract
// itself.
func (t *tree) attraction(at vector) (sum vector, potential float64, interactions int) {
	var stack [8 * (maxDepth + 1)]int32
	top := 1 // the stack holds the root
	for top > 0 {
		top--
		n := &t.nodes[stack[top]]
		d := vector{n.at[0] - at[0], n.at[1] - at[1], n.at[2] - at[2]}
		r2 := d.square()
		if n.divided && 4*n.half*n.half >= theta*theta*r2 {
			for _, child := range n.children {
				if child != 0 {
					stack[top] = child
					top++
				}
			}
			continue
		}
		if r2 == 0 {
			continue
		}
		r2 += softening * softening
		inverse := 1 / math.Sqrt(r2)
		f := n.mass * inverse
		potential -= f
		sum = sum.plus(d, f*inverse*inverse)
		interactions++
	}
	return sum, potential, interactions
}

// essential appends to out the masses of the tree that stars in a box must see: cubes that
// are points for all positions in the box, and the stars of the others.
func (t *tree) essential(b box, out []point) []point {
	var stack [8 * (maxDepth + 1)]int32
	top := 1
	for top > 0 {
		top--
		n := &t.nodes[stack[top]]
		if n.divided && 4*n.half*n.half >= theta*theta*b.distance2(n.at) {
			for _, child := range n.children {
				if child != 0 {
					stack[top] = child
					top++
				}
			}
			continue
		}
		if n.mass > 0 {
			out = append(out, n.point)
		}
	}
	return out
}
