package prof

import (
	"encoding/xml"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestKept(t *testing.T) {
	kept, stoodFor := 0, 0
	const calls = 1 << 22
	for n := range uint64(calls) {
		weight, ok := SampleWeight(n)
		if ok {
			kept, stoodFor = kept+1, stoodFor+weight
		}
		if next := NextKept(n); n < 1<<16 && ok {
			for m := n + 1; m <= next; m++ {
				if _, kept := SampleWeight(m); kept != (m == next) {
					t.Fatalf("NextKept(%d) is %d, want %d", n, next, m)
				}
			}
		}
		if n < keepAll && (!ok || weight != 1) {
			t.Fatalf("call %d is not recorded by itself", n)
		}
	}
	// keepAll/2 more for each of the thirteen times that the number doubles.
	if want := keepAll + 13*keepAll/2; kept < want-11 || kept > want+11 {
		t.Errorf("%d of %d calls are recorded, want about %d", kept, calls, want)
	}
	if stoodFor < calls-calls/100 || stoodFor > calls+calls/100 {
		t.Errorf("they represent %d calls, want %d", stoodFor, calls)
	}
}

// fourRanks is T2 figure 6.1 with numbers, and a second call of which rank 3 has no record.
func fourRanks() [][]Arrival {
	arrivals := []int64{1000, 3000, 7000, 9000}
	all := make([][]Arrival, 4)
	for r, at := range arrivals {
		all[r] = []Arrival{
			{Key: CallKey{Comm: 1, Kind: 5, N: 0}, Routine: "Alltoall", Site: "solve.go:12", Size: 4, Weight: 1, Bytes: 1024, At: at, Left: 10_000 + at/10},
			{Key: CallKey{Comm: 1, Kind: 2, N: 8}, Routine: "Bcast", Site: "solve.go:20", Size: 4, Weight: 2, Bytes: 8, At: 20_000 + at, Left: 31_000},
		}
	}
	all[3] = all[3][:1]
	all[2] = append(all[2], Arrival{Key: CallKey{Comm: 2, Kind: 2, N: 1}, Routine: "Bcast", Site: "failed.go:1", Size: 4, Weight: 1, At: 5})
	return all
}

func TestImbalanceOfFourRanks(t *testing.T) {
	ranks := fourRanks()
	merged := mergeAll(ranks, []int{0, 1, 2, 3})
	merged.Messages = []MessageTime{{8, 100}, {1016, 1108}, {8192, 9000}}
	sites := merged.Sites()
	if len(sites) != 1 {
		t.Fatalf("got %+v, want the one call that all have made", sites)
	}
	// a = 5000, d = (4000+2000+2000+4000)/4, delta = 8000, T of 1024 bytes is 1116.8 ns.
	s := sites[0]
	tt := 1108 + 8*7892/7176.
	want := SiteArrivals{Routine: "Alltoall", Site: "solve.go:12", Calls: 1, Bytes: 1024, Message: tt, Average: 3000, Worst: 8000,
		AverageFactor: 3000 / tt, WorstFactor: 8000 / tt, InCall: 5500, Tail: 1900, sum: 22000}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	if m := merged.Calls[0].Moments; len(m) != 4 {
		t.Errorf("the worst call has the moments of %d ranks, want all: %v", len(m), m)
	}
}

// mergeAll merges the records of all ranks in a given order.
func mergeAll(ranks [][]Arrival, order []int) *Arrivals {
	all := &Arrivals{}
	for _, r := range order {
		part := GatherArrivals(r, ranks[r])
		part.Hosts, part.Devices = 1, []string{"shm"}
		decoded, err := DecodeArrivals(part.Encode())
		if err != nil {
			panic(err)
		}
		all.Merge(decoded)
	}
	means, err := DecodeMeans(all.Means().Encode())
	if err != nil {
		panic(err)
	}
	for _, r := range order {
		all.Merge(&Arrivals{Calls: means.Deviations(r, ranks[r]).Calls})
	}
	for i := range all.Calls {
		all.Calls[i].Deviation = math.Round(all.Calls[i].Deviation) // a sum depends on the order a little
		slices.SortFunc(all.Calls[i].Moments, func(x, y Moment) int { return x.Rank - y.Rank })
	}
	return all
}

func TestMergeArrivalsInAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	ranks := make([][]Arrival, 7)
	for n := range uint64(40) {
		for r := range ranks {
			ranks[r] = append(ranks[r], Arrival{Key: CallKey{Comm: n % 3, Kind: int(n % 4), N: n / 12}, Routine: "r", Site: string(rune('a' + r)), Size: 7, Weight: 1,
				Bytes: rnd.IntN(100), At: int64(rnd.IntN(1 << 20)), Left: 1 << 21})
		}
	}
	want := mergeAll(ranks, []int{0, 1, 2, 3, 4, 5, 6})
	if len(want.Calls) != 40 || want.Ranks != 7 || want.Calls[0].Site != "a" {
		t.Fatalf("%d calls of %d ranks, site %s", len(want.Calls), want.Ranks, want.Calls[0].Site)
	}
	for range 5 {
		order := rnd.Perm(7)
		if got := mergeAll(ranks, order); !reflect.DeepEqual(got, want) {
			t.Errorf("in the order %v the result differs", order)
		}
	}
}

func TestClockDrift(t *testing.T) {
	o := Offset{At: 1000, Add: 500, EndAt: 2000, EndAdd: 600}
	for at, want := range map[int64]int64{1000: 1500, 1500: 2050, 2000: 2600} {
		if got := o.Of(at); got != want {
			t.Errorf("%d is %d at rank 0, want %d", at, got, want)
		}
	}
	if got := (Offset{Add: 7}).Of(100); got != 107 {
		t.Errorf("an offset that was measured once gives %d, want 107", got)
	}
	// The other clock is 10000 ahead; the first reply was slow.
	add, wrong := Estimate([]Ping{{0, 10100, 1000}, {2000, 12050, 2100}, {3000, 13500, 3700}})
	if add != 10000 || wrong != 50 {
		t.Errorf("the clock is %d ahead, give or take %d; want 10000, 50", add, wrong)
	}
}

func TestClockOfMachine(t *testing.T) {
	a, b := NewClock(), NewClock()
	if a.Domain() != b.Domain() {
		t.Errorf("two clocks of one process are of %q and %q", a.Domain(), b.Domain())
	}
	if a.Domain() == "" {
		t.Skip("this system has no clock shared by processes")
	}
	before := a.Now()
	between := b.Now()
	// They were set one after the other; each to within the time of a system call.
	const slack = 20_000
	if after := a.Now(); between < before-slack || between > after+slack {
		t.Errorf("one clock says %d to %d, and the other %d in between", before, after, between)
	}
}

func TestTextOfArrivals(t *testing.T) {
	all := mergeAll(fourRanks(), []int{0, 1, 2, 3})
	all.Messages, all.ClockError, all.Hosts, all.Lost = []MessageTime{{8, 100}, {1016, 1108}, {8192, 9000}}, 1500, 2, 3
	want := `arrivals: 4 ranks on 2 hosts over shm
collectives    1 call at 1 call site
lost           3 records found no room
clocks         of several hosts, compared to within 1.5 us

call site    routine   calls  bytes  T        average  worst  d/T  delta/T  in call  tail
solve.go:12  Alltoall  1      1 024  1.12 us  3 us     8 us   2.7  7.2      5.5 us   1.9 us
`
	if got := all.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := (&Arrivals{Ranks: 2, Hosts: 1}).Text(); !strings.Contains(got, "none that more than one rank made") {
		t.Errorf("a job without collectives has the profile\n%s", got)
	}
}

func TestPictureOfArrivals(t *testing.T) {
	var svg strings.Builder
	if err := mergeAll(fourRanks(), []int{3, 2, 1, 0}).WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	// Each rank has a bar after the last arrival; those that waited have one before it.
	if got := strings.Count(svg.String(), `fill="`+waitColour); got != 3 {
		t.Errorf("%d bars show waiting, want 3", got)
	}
	if got := strings.Count(svg.String(), `fill="`+workColour); got != 4 {
		t.Errorf("%d bars show the time after the last arrival, want 4", got)
	}
	for d := xml.NewDecoder(strings.NewReader(svg.String())); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := (&Arrivals{}).WriteSVG(io.Discard); err != nil {
		t.Error(err)
	}
}
