package coll

import (
	"math/rand"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// jury simulates the ranks of a communicator that make blocking calls. Each rank has its
// own state. late returns how late a rank is, and takes the time of an algorithm.
type jury struct {
	t     *testing.T
	ranks []*Arrivals
	late  func(rank int) int64
	takes func(aware bool) int64
}

func newJury(t *testing.T, ranks int) *jury {
	j := &jury{t: t, late: func(int) int64 { return 0 }, takes: func(bool) int64 { return 10_000 }}
	for range ranks {
		j.ranks = append(j.ranks, &Arrivals{})
	}
	return j
}

// call makes one call and reports whether it was aware. All ranks must agree in all that
// they do. A call that carries no votes must not need any.
func (j *jury) call(s *Shape, tries bool) (aware bool) {
	j.t.Helper()
	last, voted := int64(0), uint8(0)
	arrive := make([]int64, len(j.ranks))
	for i, r := range j.ranks {
		is, voting, _ := r.Begin(r.Trial(s, tries))
		if i > 0 && (is != aware || voting != j.ranks[0].voting || r.timing != j.ranks[0].timing) {
			j.t.Fatalf("rank %d: aware %v, voting %v, timing %v; rank 0: %v, %v, %v", i, is, voting, r.timing, aware, j.ranks[0].voting, j.ranks[0].timing)
		}
		if voting && (!s.CarriesVotes() || r.Vote == 0) {
			j.t.Fatalf("rank %d votes %d in a %s", i, r.Vote, s.Kind)
		}
		aware = is
		arrive[i] = j.late(i)
		last, voted = max(last, arrive[i]), max(voted, r.Vote)
	}
	for i, r := range j.ranks {
		end := last + j.takes(aware)
		if s.Kind == Bcast { // no rank waits for another than the root
			end = max(arrive[0], arrive[i]) + j.takes(aware)*int64(min(i, 1)+1)
		}
		r.Vote = voted
		r.End(r.Trial(s, tries), end-arrive[i])
	}
	return aware
}

func (j *jury) calls(n int, s *Shape) (aware int) {
	j.t.Helper()
	for range n {
		if j.call(s, true) {
			aware++
		}
	}
	return aware
}

// lateRank makes rank 1 late.
func (j *jury) lateRank(by int64) {
	j.late = func(rank int) int64 {
		if rank == 1 {
			return by
		}
		return 0
	}
}

// gains makes the aware algorithm take a percentage of the time of the default.
func (j *jury) gains(percent int64) {
	j.takes = func(aware bool) int64 {
		if aware {
			return 10_000 * percent / 100
		}
		return 10_000
	}
}

func smallAlltoall() *Shape {
	return &Shape{Kind: Alltoall, Size: 4, Send: Blocks{Each: 8}, Recv: Blocks{Each: 8}}
}

func TestTrialEvenArrival(t *testing.T) {
	j := newJury(t, 4)
	j.gains(50) // even then: the default is chosen by cost
	if n := j.calls(50_000, smallAlltoall()); n != 0 {
		t.Errorf("%d calls were aware, although nobody was late", n)
	}
}

func TestTrialLateRank(t *testing.T) {
	j := newJury(t, 4)
	j.gains(60)
	j.lateRank(200_000)
	if n := j.calls(100, smallAlltoall()); n < 25 {
		t.Errorf("%d of the first 100 calls were aware", n)
	}
	const calls = 20_000
	if n := j.calls(calls, smallAlltoall()); n < calls*9/10 {
		t.Errorf("%d of %d calls were aware, want nearly all", n, calls)
	}
	j.lateRank(0)
	if n := j.calls(1000, smallAlltoall()); n > 30 {
		t.Errorf("%d calls were aware after the last late one", n)
	}
	j.lateRank(200_000)
	if n := j.calls(1000, smallAlltoall()); n < 800 {
		t.Errorf("%d of 1000 calls were aware when a rank was late again", n)
	}
}

// TestTrialGivesUp checks calls with a late rank that the aware algorithm does not speed
// up, or by too little.
func TestTrialGivesUp(t *testing.T) {
	for _, percent := range []int64{97, 100, 200} {
		j := newJury(t, 4)
		j.gains(percent)
		j.lateRank(200_000)
		const calls = 50_000
		if n := j.calls(1000, smallAlltoall()); n == 0 || n > 30 {
			t.Errorf("%d %%: %d of the first 1000 calls were aware, want one trial", percent, n)
		}
		if n := j.calls(calls, smallAlltoall()); n == 0 || n > calls/200 {
			t.Errorf("%d %%: %d of %d calls were aware, want some, below 0.5 %%", percent, n, calls)
		}
	}
}

// TestTrialStopsPaying checks that a use ends if the algorithm no longer pays, although a
// rank is still late.
func TestTrialStopsPaying(t *testing.T) {
	j := newJury(t, 4)
	j.gains(60)
	j.lateRank(200_000)
	j.calls(1000, smallAlltoall())
	if !j.call(smallAlltoall(), true) {
		t.Fatal("not used")
	}
	j.gains(150)
	j.calls(trialRest, smallAlltoall())
	if n := j.calls(20_000, smallAlltoall()); n > 200 {
		t.Errorf("%d of 20,000 calls were aware when that had ceased to pay", n)
	}
}

// TestTrialNoise checks that an algorithm of the same speed is hardly used if ranks are
// late at random: by chance one in some hundred trials succeeds.
func TestTrialNoise(t *testing.T) {
	aware, calls := 0, 0
	for seed := range int64(20) {
		rng := rand.New(rand.NewSource(seed))
		j := newJury(t, 4)
		j.late = func(int) int64 { return rng.Int63n(300_000) }
		j.takes = func(bool) int64 { return 5_000 + rng.Int63n(20_000) }
		aware += j.calls(5000, smallAlltoall())
		calls += 5000
	}
	if aware == 0 || aware > calls*3/100 {
		t.Errorf("%d of %d calls were aware, want some, below 3 %%", aware, calls)
	}
}

// TestTrialSingleCalls checks that single long calls are not uneven arrival.
func TestTrialSingleCalls(t *testing.T) {
	j, n := newJury(t, 4), 0
	j.late = func(rank int) int64 {
		if n++; n%50 == 0 {
			return 5_000_000
		}
		return 0
	}
	if aware := j.calls(20_000, smallAlltoall()); aware != 0 {
		t.Errorf("%d calls were aware because of single long ones", aware)
	}
}

// TestTrialOthersCarry checks that the votes on a bcast travel with other calls: no rank
// hears of all others in a bcast.
func TestTrialOthersCarry(t *testing.T) {
	bcast, barrier := &Shape{Kind: Bcast, Size: 4, Bytes: 64}, &Shape{Kind: Barrier, Size: 4}
	for _, c := range []struct {
		with        bool
		least, most int
	}{{true, 400, 1000}, {false, 0, 0}} {
		j, n := newJury(t, 4), 0
		j.gains(50)
		j.lateRank(200_000)
		for range 1000 {
			if j.call(bcast, true) {
				n++
			}
			if c.with {
				j.call(barrier, false)
			}
		}
		if n < c.least || n > c.most {
			t.Errorf("with barriers %v: %d of 1000 calls were aware, want %d to %d", c.with, n, c.least, c.most)
		}
	}
}

// TestTrialRandom makes random calls of several kinds with random delays: jury.call fails
// if ranks disagree.
func TestTrialRandom(t *testing.T) {
	seeds := int64(300)
	if testing.Short() {
		seeds = 30
	}
	aware := 0
	for seed := range seeds {
		rng := rand.New(rand.NewSource(seed))
		j := newJury(t, 2+rng.Intn(7))
		shapes := []*Shape{smallAlltoall(), {Kind: Bcast, Size: 4, Bytes: 64}, {Kind: Barrier, Size: 4}, {Kind: Allreduce, Size: 4, Bytes: 64},
			{Kind: Allreduce, Size: 4, Bytes: 1 << 20}, {Kind: Allreduce, Size: 4}, {Kind: Reduce, Size: 4, Bytes: 8},
			{Kind: Allgather, Size: 4, Recv: Blocks{Lens: []int{0, 1, 2, 3}, Offs: []int{0, 0, 1, 3}, Irregular: true}}}
		rng.Shuffle(len(shapes), func(a, b int) { shapes[a], shapes[b] = shapes[b], shapes[a] })
		shapes = shapes[:1+rng.Intn(len(shapes))]
		most, victim := int64(1), 0
		j.late = func(rank int) int64 {
			if rank == victim || victim < 0 {
				return rng.Int63n(most)
			}
			return 0
		}
		j.takes = func(aware bool) int64 {
			ns := 1000 + rng.Int63n(1000)
			if aware && seed%2 == 0 {
				ns /= 2
			}
			return ns
		}
		for i := range 3000 {
			if i%300 == 0 {
				most, victim = 1+rng.Int63n(1<<uint(rng.Intn(30))), rng.Intn(len(j.ranks)+1)-1
			}
			s := shapes[rng.Intn(len(shapes))]
			bytes, _ := s.Message()
			if tries := s.Kind != Barrier && bytes > 0; (tries || s.CarriesVotes()) && j.call(s, tries) {
				aware++
			}
		}
	}
	if aware == 0 {
		t.Error("no call was aware; the test shows nothing")
	}
}

func TestTimeCode(t *testing.T) {
	last := uint8(0)
	for ns := int64(8); ns < 1<<34; ns += 1 + ns/9 {
		code := timeCode(ns)
		if code < last || code == 0 {
			t.Fatalf("the code of %d ns is %d, below %d of a shorter time", ns, code, last)
		}
		if double := timeCode(2 * ns); double != code+timeOctave && double != 255 {
			t.Fatalf("the code of %d ns is %d, of twice the time %d", ns, code, double)
		}
		last = code
	}
	for ns, want := range map[int64]uint8{-1: 1, 0: 1, 8: 1, 9: 2, 16: 9, 1 << 62: 255} {
		if got := timeCode(ns); got != want {
			t.Errorf("the code of %d ns is %d, want %d", ns, got, want)
		}
	}
}

func TestTrialAllocatesNothing(t *testing.T) {
	var a Arrivals
	trial := a.Trial(smallAlltoall(), true)
	if n := testing.AllocsPerRun(1000, func() { a.Begin(trial); a.End(trial, 100) }); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
}

// carrier is a network whose messages carry votes, as those of package engine.
type carrier struct {
	network
	votes map[*sched.Run]uint8
	sent  map[strand][]uint8
}

func (w *carrier) Post(r *sched.Run, id int, op *sched.Op, b []byte) (bool, error) {
	if op.Kind == sched.Send {
		to := strand{w.rank[r], int(op.Peer), int(op.Stream)}
		w.sent[to] = append(w.sent[to], w.votes[r])
	}
	return w.network.Post(r, id, op, b)
}

// TestVotesReachAll executes every algorithm of the kinds that carry votes, with ranks that
// begin at random times: in the end every rank must have the largest vote of all. Forms in
// a segment hand data over in messages without data, which carry votes too.
func TestVotesReachAll(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	for _, kind := range []Kind{Barrier, Allgather, Alltoall, Allreduce} {
		for _, a := range kindForms(kind) {
			for ranks := 2; ranks <= 17; ranks++ {
				for range 4 {
					shape := Shape{Kind: kind, Size: ranks, Elem: 1, Bytes: 1 + rng.Intn(3*ranks), Commutes: true, Nodes: put(a, ranks)}
					if a.InSegment != nil && rng.Intn(2) == 0 { // pap_shm_direct needs no nodes, but has phases for them
						shape.Nodes = put(&Algorithm{Needs: Needs{Nodes: true}}, ranks)
					}
					shape.Send.Each, shape.Recv.Each = shape.Bytes, shape.Bytes
					if !shape.CarriesVotes() {
						t.Fatalf("%s carries no votes", kind)
					}
					if ok, _ := Applicable(a, &shape); ok {
						votesReachAll(t, a, &shape, rng)
					}
				}
			}
		}
	}
}

// kindForms returns the algorithms of a kind and their forms in a segment.
func kindForms(kind Kind) (all []*Algorithm) {
	for _, a := range AlgorithmsOf(kind) {
		all = append(all, a)
		if form := a.SegmentForm(); form != nil {
			form.Name += "-segment"
			all = append(all, form)
		}
	}
	return all
}

func votesReachAll(t *testing.T, a *Algorithm, shape *Shape, rng *rand.Rand) {
	t.Helper()
	w := &carrier{network: network{rank: map[*sched.Run]int{}, eager: rng.Intn(2) == 0, late: true, commutes: true, queues: map[strand]*queue{}},
		votes: map[*sched.Run]uint8{}, sent: map[strand][]uint8{}}
	w.delivered = func(pair strand, to *sched.Run) {
		vote := w.sent[pair][0]
		w.sent[pair] = w.sent[pair][1:]
		w.votes[to] = max(w.votes[to], vote)
	}
	graphs := make([]*sched.Graph, shape.Size)
	for r := range graphs {
		s := *shape
		s.Rank = r
		var b sched.Builder
		var err error
		if graphs[r], err = a.Graph(&b, &s, a.Default()); err != nil {
			t.Fatal(err)
		}
	}
	inSegment := rng.Intn(2) == 0
	seg := newSegments(graphs, []Shape{*shape}, inSegment, rng)
	largest := uint8(0)
	for r, g := range graphs {
		bytes := shape.Bytes * shape.Size
		run := &sched.Run{Graph: g, Port: w, Arrivals: w, InSegment: inSegment,
			Mem: [sched.Bufs][]byte{make([]byte, bytes), make([]byte, bytes), make([]byte, g.Tmp), seg[r]}}
		w.runs = append(w.runs, run)
		w.rank[run], w.votes[run] = r, uint8(1+rng.Intn(255))
		largest = max(largest, w.votes[run])
	}
	if err := w.run(rng); err != nil {
		t.Fatalf("%s by %s, %d ranks: %v", a.Kind, a.Name, shape.Size, err)
	}
	for r, run := range w.runs {
		if w.votes[run] != largest {
			t.Fatalf("%s by %s, %d ranks of %d bytes: rank %d has the vote %d, the largest is %d", a.Kind, a.Name, shape.Size, shape.Bytes, r, w.votes[run], largest)
		}
	}
}

// TestAwareOf checks which algorithm is tried: short data goes by leaders, and nothing is
// tried that is out of proportion.
func TestAwareOf(t *testing.T) {
	four := Consecutive(2, 4, 4, 4, 4)
	for _, c := range []struct {
		kind  Kind
		bytes int
		want  string
	}{
		{Alltoall, 4, papShmDirect},
		{Allgather, 4, papShmDirect},
		{Bcast, 4, papShmDirect},
		{Reduce, 4, ""}, // the default is one
		{Allreduce, 4, ""},
		{Allgather, 8 << 10, papShmDirect},
		{Bcast, 1 << 20, ""},
		{Allreduce, 1 << 20, ""},
		{Barrier, 0, ""},
	} {
		for _, m := range []*Model{&hosts, labModel(1000), labModel(100)} {
			s := onNodes(c.kind, c.bytes, four)
			by, err := Choose(s, m, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if aware, ok := AwareOf(s, m, by.Ranked); ok {
				got = aware.Algorithm.Name
			}
			if got != c.want {
				t.Errorf("%s of %d bytes by %s at %g: tries %q, want %q", c.kind, c.bytes, by.Algorithm.Name, m.Cable, got, c.want)
			}
		}
	}
	for m, want := range map[*Model]string{&hosts: "", labModel(1000): papDirect} { // direct has pap_direct, which each rank chooses
		s := onNodes(Alltoall, 1<<20, four)
		by, err := Choose(s, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if aware, _ := AwareOf(s, m, by.Ranked); (aware.Algorithm == nil) != (want == "") || want != "" && aware.Algorithm.Name != want {
			t.Errorf("alltoall of 1 MB by %s: tries %+v, want %q", by.Algorithm.Name, aware, want)
		}
	}
	s := onNodes(Alltoall, 8, four)
	s.Send.Irregular, s.Recv.Irregular = true, true
	by, err := Choose(s, &hosts, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := AwareOf(s, &hosts, by.Ranked); ok {
		t.Error("tried for alltoallv, whose lengths ranks do not share")
	}
}
