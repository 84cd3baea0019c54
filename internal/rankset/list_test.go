package rankset

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// lists are the lists of the tests, with what they must hold.
func lists() map[string]struct {
	list *List
	want []int
} {
	type pair = struct {
		list *List
		want []int
	}
	shuffled := make([]int32, 1000)
	for i, p := range rand.New(rand.NewPCG(1, 2)).Perm(1000) {
		shuffled[i] = int32(3 * p)
	}
	wide := make([]int, len(shuffled))
	for i, r := range shuffled {
		wide[i] = int(r)
	}
	return map[string]pair{
		"empty":         {Of(nil), nil},
		"one":           {Of([]int32{7}), []int{7}},
		"sequence":      {Of([]int32{4, 7, 10}), []int{4, 7, 10}},
		"down":          {Sequence(3, 9, -4), []int{9, 5, 1}},
		"short table":   {Of([]int32{5, 1, 8}), []int{5, 1, 8}},
		"long table":    {Of(shuffled), wide},
		"every second":  {Sequence(500, 1, 2).Select(Sequence(3, 10, 5)), []int{21, 31, 41}},
		"from a table":  {Of(shuffled).Select(Sequence(2, 998, 1)), wide[998:]},
		"table of all":  {(*List)(nil).Select(Of([]int32{2, 9, 4})), []int{2, 9, 4}},
		"range of all":  {(*List)(nil).Select(Sequence(2, 3, 1)), []int{3, 4}},
		"table of step": {Sequence(10, 100, 10).Select(Of([]int32{2, 9, 4})), []int{120, 190, 140}},
	}
}

func TestList(t *testing.T) {
	for name, c := range lists() {
		got := make([]int, c.list.Len())
		for i := range got {
			got[i] = c.list.At(i)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s is %v, want %v", name, got, c.want)
		}
		for rank := -5; rank < 3010; rank++ {
			if at := c.list.Index(rank); at != slices.Index(c.want, rank) {
				t.Errorf("%s: the index of %d is %d, want %d", name, rank, at, slices.Index(c.want, rank))
			}
		}
	}
	if l := Of([]int32{4, 7, 10, 13}); l.table != nil {
		t.Error("a sequence must not keep a table")
	}
	for l, want := range map[*List]bool{nil: true, Of([]int32{0, 1, 2}): true, Of([]int32{0}): true, Of([]int32{1, 2}): false, Of([]int32{0, 2}): false} {
		if l.Identity() != want {
			t.Errorf("Identity of %+v is %v", l, !want)
		}
	}
}
