//go:build !windows

package launch

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSpans(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var s spans
		var want [40]bool
		for range random.IntN(20) {
			first := random.IntN(40)
			last := min(39, first+random.IntN(4))
			s.add(span{first, last})
			for n := first; n <= last; n++ {
				want[n] = true
			}
			var numbers []int
			for n, in := range want {
				if in {
					numbers = append(numbers, n)
				}
			}
			if !slices.Equal(s.list(), numbers) || s.count() != len(numbers) {
				t.Fatalf("%v after adding %d-%d; want %v", s, first, last, numbers)
			}
			for i := 1; i < len(s); i++ {
				if s[i].first <= s[i-1].last+1 {
					t.Fatalf("%v has runs that touch", s)
				}
			}
		}
		if got, err := readBlock(blockBody(s)); err != nil || !reflect.DeepEqual(got, s) {
			t.Fatalf("%v came as %v, %v", s, got, err)
		}
	}
}

func someReport() *report {
	return &report{
		ready: spans{{2, 4}}, started: []startedRanks{{64, []int{900, 901, 907}}, {3, []int{12}}}, joined: spans{{64, 66}},
		fence: 7, fenced: spans{{3, 3}, {64, 65}}, finalized: spans{{3, 3}}, left: spans{{3, 3}}, drained: spans{{4, 4}},
	}
}

func TestReportRoundTrip(t *testing.T) {
	want := someReport()
	got, err := readReport(want.body(), 100, 5)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v came as %+v, %v", want, got, err)
	}
	for _, limits := range [][2]int{{66, 5}, {100, 4}} {
		if _, err := readReport(want.body(), limits[0], limits[1]); err == nil {
			t.Errorf("a report about a rank or host beyond %v was accepted", limits)
		}
	}
	for cut := range want.body() {
		if _, err := readReport(want.body()[:cut], 100, 5); err == nil {
			t.Errorf("the first %d bytes of a report were accepted", cut)
		}
	}
}

// A subtree of agents sends one frame for a fence, however many ranks it has, and at once
// when the last has entered.
func TestReporterSendsOneFrameForAFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const below, ranks = 16, 64
		frames := 0
		var last *report
		top := &reporter{hosts: below + 1, send: func(body []byte) {
			frames++
			var err error
			if last, err = readReport(body, (below+1)*ranks, below+1); err != nil {
				t.Error(err)
			}
		}}
		top.expect((below + 1) * ranks)
		for nth := range 3 {
			frames = 0
			for host := range below {
				agent := &reporter{hosts: 1, ranks: ranks, send: func(body []byte) {
					r, err := readReport(body, (below+1)*ranks, below+1)
					if err != nil {
						t.Error(err)
					}
					top.add(func(held *report) { held.merge(r) })
				}}
				for rank := range ranks {
					agent.add(func(r *report) { r.addFenced(nth, host*ranks+rank) })
				}
			}
			for rank := range ranks {
				if frames != 0 {
					t.Fatalf("fence %d: a frame was sent before the last rank has entered", nth)
				}
				top.add(func(r *report) { r.addFenced(nth, below*ranks+rank) })
			}
			if frames != 1 || last.fence != nth || !reflect.DeepEqual(last.fenced, spans{{0, (below+1)*ranks - 1}}) {
				t.Errorf("fence %d: %d frames, the last for fence %d with %v", nth, frames, last.fence, last.fenced)
			}
		}
	})
}

// Ranks that wait for others are reported after reportDelay, each once.
func TestReporterSendsWhatIsIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []*report
		p := &reporter{hosts: 1, ranks: 4, send: func(body []byte) {
			r, _ := readReport(body, 4, 1)
			sent = append(sent, r)
		}}
		for _, rank := range []int{2, 0} {
			p.add(func(r *report) { r.addFenced(5, rank) })
		}
		time.Sleep(reportDelay + time.Millisecond)
		synctest.Wait()
		if len(sent) != 1 || !slices.Equal(sent[0].fenced.list(), []int{0, 2}) {
			t.Fatalf("after %v: %+v", reportDelay, sent)
		}
		for _, rank := range []int{3, 1} {
			p.add(func(r *report) { r.addFenced(5, rank) })
		}
		if len(sent) != 2 || !slices.Equal(sent[1].fenced.list(), []int{1, 3}) || sent[1].fence != 5 {
			t.Fatalf("when the fence is complete: %+v", sent)
		}
		p.add(func(r *report) { r.left.add(span{1, 1}) })
		p.close()
		if len(sent) != 3 || !slices.Equal(sent[2].left.list(), []int{1}) {
			t.Fatalf("at the end: %+v", sent)
		}
	})
}
