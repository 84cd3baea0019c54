package sim

import (
	"math"
	"reflect"
	"testing"
)

func TestRankRefusesWhatTheErrorCovers(t *testing.T) {
	list := []Ranked{{Name: "c", Micros: 20}, {Name: "a", Micros: 10}, {Name: "b", Micros: 11}, {Name: "d", Micros: 21}}
	for _, c := range []struct {
		relative float64
		want     []int
	}{{0, []int{0, 0, 0, 0}}, {0.01, []int{1, 2, 3, 4}}, {0.2, []int{1, 1, 3, 3}}, {5, []int{1, 1, 1, 1}}} {
		got := []int{}
		for _, r := range Rank(list, c.relative) {
			got = append(got, r.Position)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("error %v: positions %v, want %v", c.relative, got, c.want)
		}
	}
}

func TestKendall(t *testing.T) {
	a := []float64{1, 2, 3, 4}
	for _, c := range []struct {
		b    []float64
		want float64
	}{{[]float64{10, 20, 30, 40}, 1}, {[]float64{4, 3, 2, 1}, -1}, {[]float64{1, 2, 4, 3}, 4. / 6}, {[]float64{5, 5, 5, 5}, 0}} {
		if got := Kendall(a, c.b, 0); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("τ of %v and %v is %v, want %v", a, c.b, got, c.want)
		}
	}
	if got := MedianError([]float64{10, 10, 10}, []float64{9, 12, 15}); math.Abs(got-0.2) > 1e-9 {
		t.Errorf("the median error is %v, want 0.2", got)
	}
}

func TestArrival(t *testing.T) {
	for _, text := range []string{"soon", "late:0:1ms", "late:1", "spread:-1s", "spread:1ms:2"} {
		if _, err := ParseArrival(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	a, err := ParseArrival("late:3:1ms")
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for r := range 100 {
		if a.Of(100)(r) == 1e6 {
			late++
		}
	}
	if late != 3 {
		t.Errorf("%d ranks are late, want 3", late)
	}
	a, _ = ParseArrival("spread:1ms")
	sum := 0.0
	for r := range 1000 {
		at := a.Of(1000)(r)
		if sum += at; at < 0 || at > 1e6 {
			t.Fatalf("rank %d arrives at %v ns, beyond 1 ms", r, at)
		}
	}
	if mean := sum / 1000; mean < 4e5 || mean > 6e5 {
		t.Errorf("the mean arrival is %v ns, want about 500000", mean)
	}
}

// FuzzParseMachine checks that a machine that is accepted can be written and read again.
func FuzzParseMachine(f *testing.F) {
	f.Add(Default().Marshal())
	f.Add([]byte(`{"nodes": 1, "near": {"o": []}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMachine(text)
		if err != nil {
			return
		}
		again, err := ParseMachine(m.Marshal())
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%+v becomes %+v (%v)", m, again, err)
		}
		m.Far.O.At(1 << 20)
	})
}
