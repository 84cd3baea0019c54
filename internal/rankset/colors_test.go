package rankset

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// gathered returns the colors of n ranks as a binomial tree merges them: each rank those of
// its subtrees, every message encoded.
func gathered(t *testing.T, n int, of func(rank int) (color, key int64)) *Colors {
	t.Helper()
	var below func(rank, span int) *Colors
	below = func(rank, span int) *Colors {
		color, key := of(rank)
		c := One(color, key, rank)
		for step := 1; step < span && rank+step < n; step *= 2 {
			got, err := Parse(below(rank+step, step).Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			c.Merge(got)
		}
		return c
	}
	span := 1
	for span < n {
		span *= 2
	}
	return below(0, span)
}

func TestColors(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	keys := rng.Perm(2000)
	for name, c := range map[string]struct {
		of   func(rank int) (color, key int64)
		most int // bytes of the encoding
	}{
		"one color":            {func(int) (int64, int64) { return 4, 0 }, 20},
		"reversed":             {func(r int) (int64, int64) { return 4, int64(-r) }, 20},
		"odd and even":         {func(r int) (int64, int64) { return int64(r % 2), int64(r) }, 40},
		"nodes of 64":          {func(r int) (int64, int64) { return int64(r / 64), 0 }, 32 * 12},
		"random keys":          {func(r int) (int64, int64) { return 0, int64(keys[r]) }, 2000 * 12},
		"random colors":        {func(r int) (int64, int64) { return int64(keys[r] % 5), int64(r) }, 2000 * 12},
		"each its own":         {func(r int) (int64, int64) { return int64(keys[r]), 0 }, 2000 * 12},
		"interleaved runs":     {func(r int) (int64, int64) { return 0, int64(r % 2) }, 2000 * 12},
		"large keys of either": {func(r int) (int64, int64) { return 0, int64(r-1000) << 40 }, 30},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 2000
			all := gathered(t, n, c.of)
			if size := len(all.Append(nil)); size > c.most {
				t.Errorf("the encoding takes %d bytes, want at most %d", size, c.most)
			}
			want := map[int64][]int{}
			key := make([]int64, n)
			for r := range n {
				var color int64
				color, key[r] = c.of(r)
				want[color] = append(want[color], r)
			}
			for color, ranks := range want {
				slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(key[a], key[b]) })
				l := all.Only(One(color, 0, 0)).Members(color)
				got := make([]int, l.Len())
				for i := range got {
					got[i] = l.At(i)
				}
				if !slices.Equal(got, ranks) {
					t.Fatalf("color %d has the members %v, want %v", color, got, ranks)
				}
			}
			if all.Members(-77).Len() != 0 || len(all.Only(One(-77, 0, 0)).each) != 0 {
				t.Error("a color that no rank passed must have no members")
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	good := One(1, 2, 3).Append(nil)
	for _, b := range [][]byte{nil, good[:len(good)-1], append(slices.Clone(good), 0), {4}, {0xff}} {
		if c, err := Parse(b); err == nil {
			t.Errorf("% x must be refused; got %+v", b, c)
		}
	}
}
