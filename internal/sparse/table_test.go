package sparse

import (
	"maps"
	"math/rand/v2"
	"testing"
)

func TestTable(t *testing.T) {
	var table Table[int]
	want := map[int]*int{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		i, v := rng.IntN(1_000_000), new(int)
		table.Set(i, v)
		want[i] = v
	}
	table.Set(5, nil)
	if got := maps.Collect(table.All); !maps.Equal(got, want) {
		t.Errorf("All yields %d entries that differ from the %d set", len(got), len(want))
	}
	for i, v := range want {
		if table.Get(i) != v {
			t.Errorf("entry %d is %p, want %p", i, table.Get(i), v)
		}
	}
	for _, i := range []int{-1, 5, 1 << 40} {
		if table.Get(i) != nil {
			t.Errorf("entry %d was never set and must be nil", i)
		}
	}
	if got, most := table.Words(), 8*table.Len(); got > most {
		t.Errorf("the table takes %d words for %d entries, want at most %d", got, table.Len(), most)
	}
}
