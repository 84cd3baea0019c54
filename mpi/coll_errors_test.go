package mpi_test

// Invalid collective calls, and calls that fail.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// Nonblocking and persistent calls are rejected like blocking ones, when they are waited
// for, and the error has their own name.
func TestRefusedCollectives(t *testing.T) {
	mpitest.Sizes(t, []int{1, 3}, func(t *testing.T, c *mpi.Comm) {
		size := c.Size()
		two, three := make([]int, 2), make([]int, 3)
		sum := mpi.Sum[int]
		each := make([]int, size) // counts
		for i := range each {
			each[i] = 1
		}
		all, tooFew := make([]int, size), make([]int, size-1)
		negative := append([]int{-1}, each[1:]...)
		for _, tt := range []struct {
			what  string
			class mpi.Class
			err   error
			want  string
		}{
			{"Ibcast", mpi.ErrRoot, waitErr(mpi.Ibcast(c, two, size)), "ranks 0 to"},
			{"BcastInit", mpi.ErrRoot, waitErr(mpi.BcastInit(c, two, -1).Start()), "no rank -1"},
			{"Igather", mpi.ErrCount, waitErr(mpi.Igather(c, two, make([]int, 1), c.Rank())), "out has 1"},
			{"Gatherv", mpi.ErrCount, mpi.Gatherv(c, two[:1], all, each[:size-1], nil, c.Rank()), "counts for out"},
			{"Gatherv", mpi.ErrCount, mpi.Gatherv(c, two, all, each, nil, c.Rank()), "in has 2"},
			{"Scatterv", mpi.ErrBuffer, mpi.Scatterv(c, tooFew, each, nil, two[:1], c.Rank()), "which has"},
			{"Iscatterv", mpi.ErrArg, waitErr(mpi.Iscatterv(c, all, each, []int{}, two[:1], c.Rank())), "displacements"},
			{"Allgatherv", mpi.ErrCount, mpi.Allgatherv(c, two[:1], all, negative, nil), "-1"},
			{"Alltoallv", mpi.ErrBuffer, mpi.Alltoallv(c, all, each, nil, tooFew, each, nil), "out"},
			{"Ialltoallv", mpi.ErrBuffer, waitErr(mpi.Ialltoallv(c, tooFew, each, nil, all, each, nil)), "in"},
			{"Alltoallw", mpi.ErrArg, mpi.Alltoallw(c, all, nil, all, nil), "layouts"},
			{"Iallreduce", mpi.ErrCount, waitErr(mpi.Iallreduce(c, two, three, sum)), "out 3"},
			{"Iallreduce", mpi.ErrType, waitErr(mpi.Iallreduce(c, []string{""}, []string{""}, (&mpi.UserOp[string]{Combine: func(_, _ []string) {}}).Op)), "string"},
			{"AllreduceInit", mpi.ErrOp, waitErr(mpi.AllreduceInit(c, two, two, (&mpi.UserOp[int]{}).Op).Start()), "Combine"},
			{"ReduceScatter", mpi.ErrBuffer, mpi.ReduceScatter(c, tooFew, two[:1], each, sum), "which has"},
			{"ReduceScatter", mpi.ErrCount, mpi.ReduceScatter(c, all, two, each, sum), "out has 2"},
			{"ReduceScatterBlock", mpi.ErrCount, mpi.ReduceScatterBlock(c, all, two, sum), "out has 2"},
			{"Exscan", mpi.ErrCount, mpi.Exscan(c, two, three, sum), "in has 2"},
		} {
			if tt.err == nil && size == 1 && strings.Contains(tt.what, "v") {
				continue // alone, nothing can be too few
			}
			e := wantClass(t, tt.err, tt.class, tt.what)
			if e.Op != tt.what || !strings.Contains(e.Error(), tt.want) {
				t.Errorf("error of %s does not say so, and %q: %v", tt.what, tt.want, tt.err)
			}
		}
		barrier(t, c) // nothing was sent
	})
}

// If ranks pass different lengths, each rank that detects it gets an error, in calls of
// each form.
func TestStartedCountsThatDiffer(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		own := func(n int) []int { return make([]int, n+c.Rank()) } // each has one more
		for _, tt := range []struct {
			name string
			seen bool // here
			call func(d *mpi.Comm) error
		}{
			{"Ibcast", c.Rank() != 0, func(d *mpi.Comm) error { return waitErr(mpi.Ibcast(d, own(2), 0)) }},
			{"Igather", c.Rank() == 0, func(d *mpi.Comm) error { return waitErr(mpi.Igather(d, own(2), make([]int, 6), 0)) }},
			{"Iallreduce", true, func(d *mpi.Comm) error { return waitErr(mpi.Iallreduce(d, own(2), own(2), mpi.Sum)) }},
			{"AllreduceInit", true, func(d *mpi.Comm) error {
				return waitErr(mpi.AllreduceInit(d, own(2), own(2), mpi.Sum).Start())
			}},
		} {
			d, err := c.Dup()
			noError(t, err, "Dup")
			if err = tt.call(d); tt.seen {
				e := wantClass(t, err, mpi.ErrTruncate, tt.name)
				if e.Op != tt.name || !strings.Contains(e.Error(), "counts differ") {
					t.Errorf("error of %s: %v", tt.name, err)
				}
			}
			noError(t, d.Free(), "Free")
		}
		barrier(t, c)
	})
}

func TestConfigCollective(t *testing.T) {
	for value, want := range map[string]string{
		"allreduce=rign":                  "recursive-doubling",
		"alreduce=ring":                   "allreduce",
		"ring":                            "allreduce=ring",
		"bcast=chain:segment":             "segment=8192",
		"bcast=chain:segment=8X":          "segment=8K",
		"bcast=chain:width=8192":          "segment",
		"bcast=binomial,allgather=cobweb": "bruck",
	} {
		_, err := mpi.ConfigFromEnv([]string{"MUSTER_COLLECTIVE=" + value})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "MUSTER_COLLECTIVE") {
			t.Errorf("MUSTER_COLLECTIVE=%s: %v; want an error that suggests %s", value, err, want)
		}
	}
	for _, value := range []string{"bcast=chain:segment=8192", "bcast=chain:segment=8K", "bcast=chain:segment=8KiB"} {
		if _, err := mpi.ConfigFromEnv([]string{"MUSTER_COLLECTIVE=" + value}); err != nil {
			t.Errorf("MUSTER_COLLECTIVE=%s: %v", value, err)
		}
	}
	if mpitest.Launched() {
		return // the job has its configuration
	}
	mpitest.RunConfig(t, 3, &mpi.Config{Collective: "allreduce=ring, alltoall=bruck"}, func(t *testing.T, c *mpi.Comm) {
		for kind, want := range map[string]string{"allreduce": "ring", "alltoall": "bruck"} {
			choice, err := inspect.ExplainCollective(c, kind, 8192, 0)
			noError(t, err, "ExplainCollective")
			if choice.Algorithm != want || len(choice.Others) == 0 || choice.Others[0].Algorithm == want {
				t.Errorf("%s is forced to %s, and is done by %v", kind, want, choice)
			}
		}
		for _, k := range collCases(c, 300, 3, 1) {
			k.before()
			noError(t, k.blocking(), k.name)
			k.check(t, k.name)
		}
		_, err := inspect.ExplainCollective(c, "allreduces", 8, 0)
		wantClass(t, err, mpi.ErrArg, "a collective that is not there")
	})
}

func TestConfigTuning(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("the job has its configuration")
	}
	file := filepath.Join(t.TempDir(), "tuning.json")
	rules := `{"about": "a test", "rules": [{"kind": "allgather", "bytes": [0, 100], "algorithm": "ring"}, {"kind": "allgather", "algorithm": "direct"}]}`
	noError(t, os.WriteFile(file, []byte(rules), 0o644), "WriteFile")
	mpitest.RunConfig(t, 3, &mpi.Config{Tuning: file, Collective: "bcast=chain"}, func(t *testing.T, c *mpi.Comm) {
		for _, tt := range []struct {
			kind  string
			bytes int
			want  string
		}{{"allgather", 100, "ring"}, {"allgather", 101, "direct"}, {"bcast", 8, "chain"}} {
			choice, err := inspect.ExplainCollective(c, tt.kind, tt.bytes, 0)
			noError(t, err, "ExplainCollective")
			if choice.Algorithm != tt.want || choice.Reason == "" {
				t.Errorf("%s of %d bytes is done by %v, want %s", tt.kind, tt.bytes, choice, tt.want)
			}
		}
	})
	for _, text := range []string{"no file", `{"rules": [{"kind": "allgather", "algorithm": "rong"}]}`} {
		name := filepath.Join(t.TempDir(), "other.json")
		if text != "no file" {
			noError(t, os.WriteFile(name, []byte(text), 0o644), "WriteFile")
		}
		if _, err := mpi.Local(1, &mpi.Config{Tuning: name}); err == nil || !strings.Contains(err.Error(), "MUSTER_TUNING") {
			t.Errorf("a tuning table that cannot be used (%s): %v", text, err)
		}
	}
}

// A panic in a user-defined operation is an error with its stack on that rank, and an
// error that names that rank on all others.
func TestOperationThatPanics(t *testing.T) {
	for name, cfg := range map[string]*mpi.Config{"messages": {Collective: byMessages}, "default": nil} {
		t.Run(name, func(t *testing.T) {
			mpitest.RunConfig(t, 2, cfg, func(t *testing.T, c *mpi.Comm) {
				broken := (&mpi.UserOp[int]{Name: "broken", Combine: func(inout, in []int) { panic("no such thing") }}).Op
				n := 1 << 14 // beyond what goes through shared memory
				in, out := make([]int, n), make([]int, n)
				for _, k := range []struct {
					what string
					call func(d *mpi.Comm) error
				}{
					{"Allreduce", func(d *mpi.Comm) error { return mpi.Allreduce(d, in, out, broken) }},
					{"Iallreduce", func(d *mpi.Comm) error { return waitErr(mpi.Iallreduce(d, in, out, broken)) }},
					{"AllreduceInit", func(d *mpi.Comm) error { return waitErr(mpi.AllreduceInit(d, in, out, broken).Start()) }},
				} {
					d, err := c.Dup()
					noError(t, err, "Dup")
					what := k.what
					err = k.call(d)
					e := wantClass(t, err, mpi.ErrOp, what)
					for _, want := range []string{"broken", "no such thing"} {
						if !strings.Contains(e.Error(), want) {
							t.Errorf("%s: the error does not say %q: %v", what, want, err)
						}
					}
					other := fmt.Sprintf("on rank %d", 1-c.Rank())
					if !strings.Contains(e.Error(), other) && !strings.Contains(e.Error(), "coll_errors_test.go") {
						t.Errorf("%s: the error shows neither the stack nor the other rank: %v", what, err)
					}
					noError(t, d.Free(), "Free")
				}
				barrier(t, c)
			})
		})
	}
}
