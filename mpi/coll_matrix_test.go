package mpi_test

// The matrix of the proofs (internal/coll/prove_test.go), executed: every algorithm
// with every parameter, and the shared segment as one more, × numbers of ranks ×
// counts × roots × blocks × in place or not × commuting or not, each as a blocking,
// a nonblocking and a persistent call, over the real device. The steps of a call:
//
//	matrixCalls      list the calls, the same list on all ranks
//	 └ force         select the algorithm or the segment (export_test.go)
//	    └ prepared   make buffers and expected results (coll_matrix_calls_test.go)
//	       └ execute make the call in its three forms, compare every byte, and check
//	                 that the selected algorithm was used
//
// An ordinary run uses a sample. The whole matrix takes minutes: make coll-matrix.

import (
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

var (
	matrixFull  = flag.Bool("matrix.full", false, "execute the whole matrix of collectives, not a sample (minutes)")
	matrixRanks = flag.String("matrix.ranks", "1,2,3,5,8", "with so many ranks")
)

// matrixWay is a way to make calls of one kind.
type matrixWay struct {
	kind      coll.Kind
	algorithm *coll.Algorithm // nil: the segment
	params    []int
	nodes     []int // of the ranks, for an algorithm that needs several; they are made up
}

func (w matrixWay) String() string {
	if w.algorithm == nil {
		return w.kind.String() + " in the segment"
	}
	return fmt.Sprintf("%s by %s %v", w.kind, w.algorithm.Name, w.params)
}

func TestCollectiveMatrix(t *testing.T) {
	var ranks []int
	for _, word := range strings.Split(*matrixRanks, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("-matrix.ranks is %q; give numbers with commas between them: %v", *matrixRanks, err)
		}
		ranks = append(ranks, n)
	}
	var total matrixCount
	for kind := range coll.Neighbors + 1 {
		for _, a := range append(coll.AlgorithmsOf(kind), nil) {
			name := "segment"
			if a != nil {
				name = a.Name
			} else if kind == coll.Neighbors {
				continue // has no form there
			}
			t.Run(kind.String()+"/"+name, func(t *testing.T) {
				mpitest.Sizes(t, ranks, func(t *testing.T, c *mpi.Comm) {
					n := executeMatrix(t, c, kind, a)
					if c.Rank() == 0 {
						total.add(t, kind.String()+" by "+name, c.Size(), n)
					}
				})
			})
		}
	}
	if total.calls > 0 { // else this is not rank 0 of a job
		t.Log(&total)
		if *matrixFull && !t.Failed() {
			fmt.Println(&total)
		}
	}
}

// matrixCount counts the executed calls.
type matrixCount struct {
	mu    sync.Mutex
	calls int
	ways  map[string]bool
	ranks []int
}

func (m *matrixCount) add(t *testing.T, way string, ranks, calls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if calls == 0 {
		t.Logf("%s cannot serve any call among %d ranks", way, ranks)
		return
	}
	if m.calls += calls; m.ways == nil {
		m.ways = make(map[string]bool)
	}
	m.ways[way] = true
	if !slices.Contains(m.ranks, ranks) {
		m.ranks = append(m.ranks, ranks)
	}
}

func (m *matrixCount) String() string {
	return fmt.Sprintf("%d calls by %d algorithms, the segment counted for each kind, are right to the byte, among %v ranks", m.calls, len(m.ways), m.ranks)
}

// executeMatrix executes all calls of a kind by one algorithm, nil for the segment,
// and counts them.
func executeMatrix(t *testing.T, world *mpi.Comm, kind coll.Kind, a *coll.Algorithm) (executed int) {
	c, err := world.Dup() // the barrier of the world itself has a way of its own
	noError(t, err, "Dup")
	c.SetName("matrix")
	ways := []matrixWay{{kind: kind}}
	if a == nil {
		if !haveSegment(t, c) {
			noError(t, c.Free(), "Free")
			return 0
		}
	} else {
		ways = nil
		for _, params := range matrixParams(a) {
			ways = append(ways, matrixWay{kind: kind, algorithm: a, params: params})
		}
	}
	defer mpi.Unforce(c, kind)
	for i, way := range ways {
		if a != nil && a.Needs.Nodes {
			way.nodes = matrixNodes(c.Size(), i)
			mpi.PretendNodes(c, way.nodes)
		}
		way.force(c)
		first := true
		for i, k := range matrixCalls(kind, c.Size()) {
			can := way.can(k, c.Size(), true)
			// The first call is always executed, so that every way has one.
			if !*matrixFull && !(can && first) && !sampled(way, c.Size(), i) {
				continue
			}
			n := execute(t, c, way, k)
			if can {
				first = false
				executed += n
			}
		}
	}
	noError(t, c.Free(), "Free")
	return executed
}

// matrixNodes assigns ranks to nodes: halves, three nodes round-robin, one rank alone, or
// nodes of different sizes, mixed.
func matrixNodes(ranks, form int) []int {
	nodes := make([]int, ranks)
	for r := range nodes {
		switch form % 4 {
		case 0:
			nodes[r] = r * 2 / ranks
		case 1:
			nodes[r] = r % 3
		case 2:
			nodes[r] = min(r, 1)
		case 3:
			nodes[r] = r * r % 7
		}
	}
	return nodes
}

// haveSegment makes enough calls for the ranks of c to create their shared segment. It
// returns false if they cannot have one.
func haveSegment(t *testing.T, c *mpi.Comm) bool {
	t.Helper()
	one := []int64{1}
	for range 6 {
		noError(t, mpi.Allreduce(c, one, []int64{0}, mpi.Sum), "Allreduce")
	}
	bytes, why := inspect.NodeSegment(c)
	if bytes > 0 {
		return true
	}
	for _, fair := range []string{"one rank", "different hosts", "MUSTER_NO_SHARED_MEMORY"} {
		if strings.Contains(why, fair) {
			return false
		}
	}
	t.Fatalf("rank %d of %d has no segment: %s", c.Rank(), c.Size(), why)
	return false
}

// matrixParams returns every combination of the values worth trying, and segment lengths
// short enough for most calls to have several segments.
func matrixParams(a *coll.Algorithm) (all [][]int) {
	a.EachParams(func(params []int) {
		all = append(all, slices.Clone(params))
		for i, p := range a.Params {
			if p.Name == "segment" && params[i] == p.Values[0] {
				short := slices.Clone(params)
				short[i] = 8
				all = append(all, short)
			}
		}
	})
	return all
}

func (w matrixWay) force(c *mpi.Comm) {
	if w.algorithm == nil {
		mpi.ForceSegment(c, w.kind)
	} else {
		mpi.ForceAlgorithm(c, w.algorithm, w.params)
	}
}

// can reports whether a way is applicable to a call. If not, another way is used. Calls
// that may wait exchange the lengths of blocks for algorithms that need them.
func (w matrixWay) can(k matrixCall, ranks int, waits bool) bool {
	if w.algorithm == nil {
		return !k.irregular && (k.count > 0 || k.kind == coll.Barrier)
	}
	s := coll.Shape{Kind: k.kind, Size: ranks, Elem: oddBytes, Commutes: !k.ordered, Bytes: k.count * oddBytes}
	s.Send.Irregular, s.Recv.Irregular = k.irregular, k.irregular
	s.Nodes = coll.NewTopology(w.nodes, 2)
	if waits && k.irregular {
		s.Carried = []coll.Blocks{}
	}
	ok, _ := coll.Applicable(w.algorithm, &s)
	return ok
}

// sampled reports whether a call is in the sample, with the same result on all ranks. The
// size of the sample hardly depends on the number of ranks.
func sampled(w matrixWay, ranks, i int) bool {
	h := fnv.New32a()
	fmt.Fprint(h, w, ranks, i)
	every := uint32(8)
	if ranks > 5 {
		every *= 3
	}
	if race.Enabled { // under which calls take ten times as long
		every *= 4
		if testing.Short() {
			every *= 2
		}
	}
	return h.Sum32()%every == 0
}

// execute makes a call in all forms of a way, and counts them. If the way is not
// applicable to a form, it checks that another is used.
func execute(t *testing.T, c *mpi.Comm, way matrixWay, k matrixCall) int {
	r := k.prepared(t, c)
	what := fmt.Sprintf("%v, %v, on rank %d of %d", way, k, c.Rank(), c.Size())
	on := c
	if r.on != nil {
		on = r.on
	}
	run := func(form string, call func() error) {
		r.restore()
		r.entered = time.Now()
		noError(t, call(), what+", "+form)
		r.left = time.Now()
		r.check(t, c, what+", "+form)
	}
	forms := 1
	can := way.can(k, c.Size(), true)
	mpi.ForgetPlans(on)
	run("blocking", r.blocking)
	way.wantServed(t, on, can, what+", blocking")
	if way.algorithm != nil { // the other forms are served by messages alone
		forms = 3
		started := way.can(k, c.Size(), false)
		if can && !started {
			forms = 2
		}
		mpi.ForgetPlans(on)
		run("started", func() error { _, err := r.start().Wait(); return err })
		way.wantServed(t, on, started, what+", started")
		mpi.ForgetPlans(on)
		prepared := r.prepare()
		way.wantServed(t, on, can, what+", prepared")
		for range 2 {
			run("prepared", func() error { _, err := prepared.Start().Wait(); return err })
		}
	}
	if r.on != nil {
		noError(t, r.on.Free(), "Free")
	}
	return forms
}

// wantServed checks that the last call used the forced algorithm, or, if that one
// is not applicable, one that is.
func (w matrixWay) wantServed(t *testing.T, c *mpi.Comm, can bool, what string) {
	t.Helper()
	by, params := mpi.ServedBy(c, w.kind)
	forced := by == w.algorithm && slices.Equal(params, w.params)
	if can != forced || !can && (by == nil || by == w.algorithm) {
		t.Fatalf("%s: it was served by %v", what, matrixWay{kind: w.kind, algorithm: by, params: params})
	}
}
