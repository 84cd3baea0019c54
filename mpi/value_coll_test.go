package mpi_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestValueCollectives(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 5}, func(t *testing.T, c *mpi.Comm) {
		var want []map[string]int
		whole := map[string]int{}
		for r := range c.Size() {
			m := map[string]int{fmt.Sprintf("rank %d", r): r, strings.Repeat("x", 100*r): 1}
			want = append(want, m)
			maps.Copy(whole, m)
		}
		mine, root := want[c.Rank()], c.Size()-1
		all, err := mpi.AllgatherValue(c, mine)
		noError(t, err, "AllgatherValue")
		if !reflect.DeepEqual(all, want) {
			t.Errorf("AllgatherValue returned %v", all)
		}
		all, err = mpi.GatherValue(c, mine, root)
		noError(t, err, "GatherValue")
		if got := c.Rank() == root; got != reflect.DeepEqual(all, want) || !got && all != nil {
			t.Errorf("GatherValue returned %v", all)
		}
		var give []map[string]int
		if c.Rank() == root {
			give = want
		}
		one, err := mpi.ScatterValue(c, give, root)
		noError(t, err, "ScatterValue")
		if !reflect.DeepEqual(one, mine) {
			t.Errorf("ScatterValue returned %v", one)
		}
		sum, err := mpi.AllreduceValue(c, mine, func(a, b map[string]int) map[string]int {
			maps.Copy(a, b)
			return a
		})
		noError(t, err, "AllreduceValue")
		if !reflect.DeepEqual(sum, whole) {
			t.Errorf("AllreduceValue returned %v", sum)
		}
	})
}

// A value that one rank cannot encode is an error on all.
func TestValueThatCannotBeEncoded(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		var v any = 1
		if c.Rank() == 1 {
			v = make(chan int)
		}
		if _, err := mpi.AllgatherValue(c, v); err == nil {
			t.Error("AllgatherValue must fail")
		}
		var values []int
		if c.Rank() == 0 {
			values = []int{1}
		}
		_, err := mpi.ScatterValue(c, values, 0)
		if err == nil || c.Rank() == 0 && !strings.Contains(err.Error(), "1 values for 3 ranks") {
			t.Errorf("ScatterValue returned %v", err)
		}
	})
}

func TestHintsNameCallsThatExist(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		s := []string{"a"}
		for want, err := range map[string]error{
			"use SendValue and RecvValue": mpi.Send(c, s, 0, 0),
			"use BcastValue":              mpi.Bcast(c, s, 0),
			"use GatherValue":             mpi.Gather(c, s, s, 0),
			"use ScatterValue":            mpi.Scatter(c, s, s, 0),
			"use AllgatherValue":          mpi.Allgather(c, s, s),
			"SendValue and RecvValue":     mpi.Alltoall(c, s, s),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q: %v", want, err)
			}
		}
	})
}

func TestSelf(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		self := c.Self()
		if self.Size() != 1 || self.Rank() != 0 || self != c.Self() {
			t.Fatalf("Self is %+v", self)
		}
		got := []int{0}
		_, err := mpi.Sendrecv(self, []int{c.Rank()}, 0, 0, got, 0, 0)
		noError(t, err, "Sendrecv")
		noError(t, self.Barrier(), "Barrier")
		dup, err := self.Dup()
		noError(t, err, "Dup")
		if got[0] != c.Rank() || dup.Size() != 1 {
			t.Errorf("got %d", got[0])
		}
		noError(t, dup.Free(), "Free")
		wantClass(t, self.Free(), mpi.ErrComm, "Free of Self")
		noError(t, c.Self().Barrier(), "Barrier after it")
	})
}
