package mpi_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/mpi"
)

// noteHook notes what rank 0 does, and checks that every call ends once and every started
// operation is completed once.
type noteHook struct {
	t      *testing.T
	mu     sync.Mutex
	notes  []string
	calls  []mpi.Call
	ended  map[uint64]bool
	closed map[uint64]bool // started operations that are complete
}

func newNoteHook(t *testing.T) *noteHook {
	return &noteHook{t: t, ended: map[uint64]bool{}, closed: map[uint64]bool{}}
}

func (h *noteHook) note(c *mpi.Call, format string, args ...any) {
	if c.Comm.World().Comm().Rank() == 0 {
		h.notes = append(h.notes, fmt.Sprintf(format, args...))
	}
}

func (h *noteHook) Begin(c mpi.Call) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
	h.note(&c, "%s %v %d %d %d", c.Name, c.Kind, c.Peer, c.Tag, c.Bytes)
	return uint64(len(h.calls) - 1)
}

func (h *noteHook) End(id uint64, st mpi.Status, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &h.calls[id]
	if h.ended[id] {
		h.t.Errorf("%s has ended twice", c.Name)
	}
	h.ended[id] = true
	if st.Source != mpi.ProcNull && !c.Starts && c.Kind != mpi.CallWait {
		h.note(c, "%s got %d bytes of rank %d, tag %d", c.Name, st.Bytes, st.Source, st.Tag)
	}
}

func (h *noteHook) Complete(start, by uint64, st mpi.Status, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &h.calls[start]
	if !c.Starts || h.closed[start] || h.ended[by] {
		h.t.Errorf("%s is reported as completed by %s, but it starts nothing, is complete, or %[2]s has ended", c.Name, h.calls[by].Name)
	}
	h.closed[start] = true
	if h.calls[by].Kind != mpi.CallWait { // else it depends on time whether it was complete before
		return
	}
	if c.Kind == mpi.CallRecv {
		h.note(c, "%s completes %s: %d bytes", h.calls[by].Name, c.Name, st.Bytes)
	}
}

// check reports calls without an end and operations that were not completed.
func (h *noteHook) check() {
	for id, c := range h.calls {
		if !h.ended[uint64(id)] || c.Starts && !h.closed[uint64(id)] {
			h.t.Errorf("%s (call %d) has not ended or was not completed", c.Name, id)
		}
	}
}

// TestHookSeesCalls makes one call of each kind and compares what the hook sees at rank 0.
func TestHookSeesCalls(t *testing.T) {
	type world = *mpi.Comm
	swap := func(c world) int { return 1 - c.Rank() }
	tests := []struct {
		name string
		run  func(c world) error
		want []string
	}{
		{"blocking", func(c world) error {
			if c.Rank() == 0 {
				return mpi.Send(c, []int64{1, 2}, 1, 5)
			}
			_, err := mpi.Recv(c, make([]int64, 3), mpi.AnySource, 5)
			return err
		}, []string{"Send send 1 5 16"}},
		{"receive", func(c world) error {
			if c.Rank() == 1 {
				return mpi.Ssend(c, []byte("abc"), 0, 9)
			}
			_, err := mpi.Recv(c, make([]byte, 8), mpi.AnySource, mpi.AnyTag)
			return err
		}, []string{"Recv receive -1 -1 8", "Recv got 3 bytes of rank 1, tag 9"}},
		{"non-blocking", func(c world) error {
			rs := []mpi.Request{mpi.Irecv(c, make([]byte, 8), swap(c), 1), mpi.Isend(c, make([]byte, 4), swap(c), 1)}
			err := mpi.WaitAll(rs...)
			return err
		}, []string{"Irecv receive 1 1 8", "Isend send 1 1 4", "WaitAll wait -2 -1 0", "WaitAll completes Irecv: 4 bytes"}},
		{"sendrecv", func(c world) error {
			_, err := mpi.Sendrecv(c, []byte{1}, swap(c), 2, make([]byte, 1), swap(c), 2)
			return err
		}, []string{"Sendrecv sendrecv 1 2 1", "Sendrecv got 1 bytes of rank 1, tag 2"}},
		{"persistent", func(c world) error {
			s, r := mpi.SendInit(c, []byte{1}, swap(c), 3), mpi.RecvInit(c, make([]byte, 1), swap(c), 3)
			rs := mpi.StartAll([]*mpi.Persistent{r, s}, nil)
			_, err := rs[0].Wait()
			if err == nil {
				_, err = rs[1].Wait()
			}
			return err
		}, []string{"SendInit prepare 1 3 1", "RecvInit prepare 1 3 1", "Start receive 1 3 1", "Start send 1 3 1",
			"Wait wait -2 -1 0", "Wait completes Start: 1 bytes", "Wait wait -2 -1 0"}},
		{"matched probe", func(c world) error {
			if c.Rank() == 1 {
				return mpi.SendValue(c, "hello", 0, 4)
			}
			_, _, err := mpi.RecvValue[string](c, 1, 4)
			return err
		}, []string{"RecvValue receive 1 4 0", "RecvValue got 9 bytes of rank 1, tag 4"}},
		{"collectives", func(c world) error {
			x := make([]int32, 2)
			if err := mpi.Bcast(c, x, 1); err != nil {
				return err
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			if _, err := mpi.Iallreduce(c, nil, x, mpi.Sum).Wait(); err != nil {
				return err
			}
			if err := mpi.ReduceScatter(c, x, x[:1], []int{1, 1}, mpi.Sum); err != nil {
				return err
			}
			if err := mpi.Alltoallv(c, x, []int{1, 1}, nil, make([]int32, 2), []int{1, 1}, nil); err != nil {
				return err
			}
			_, err := mpi.AllgatherInit(c, x[:1], make([]int32, 2)).Start().Wait()
			return err
		}, []string{"Bcast collective 1 -1 8", "Barrier collective -2 -1 0", "Iallreduce collective -2 -1 8", "Wait wait -2 -1 0",
			"ReduceScatter collective -2 -1 8", "Alltoallv collective -2 -1 8",
			"AllgatherInit prepare -2 -1 4", "Start collective -2 -1 4", "Wait wait -2 -1 0"}},
		{"communicators", func(c world) error {
			if _, err := mpi.GatherValue(c, "x", 0); err != nil {
				return err
			}
			s, err := c.Split(0, 0)
			if err != nil {
				return err
			}
			if _, err = s.DistGraphCreate([]mpi.Edge{{From: 0, To: 1}}, mpi.Near); err != nil {
				return err
			}
			return s.Free()
		}, []string{"GatherValue collective 0 -1 0", "Split create -2 -1 0", "DistGraphCreate create -2 -1 0", "Free free -2 -1 0"}},
		{"one-sided", func(c world) error {
			w, err := mpi.AllocateWin[int64](c, 4)
			if err != nil {
				return err
			}
			if err := w.Fence(); err != nil {
				return err
			}
			if err := w.Put([]int64{7}, swap(c), 0); err != nil {
				return err
			}
			if err := w.FenceEnd(); err != nil {
				return err
			}
			return w.Free()
		}, []string{"AllocateWin create -2 -1 32", "Fence synchronization -2 -1 0", "Put access 1 -1 8",
			"FenceEnd synchronization -2 -1 0", "Win.Free free -2 -1 0"}},
	}
	for _, test := range tests {
		for _, check := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/check=%v", test.name, check), func(t *testing.T) {
				h := newNoteHook(t)
				runLocal(t, 2, &mpi.Config{Hook: h, Check: check}, test.run)
				h.check()
				if !slices.Equal(h.notes, test.want) {
					t.Errorf("the hook saw at rank 0\n%q\nand should have seen\n%q", h.notes, test.want)
				}
			})
		}
	}
}

// runLocal runs a job of goroutines with a configuration.
func runLocal(t *testing.T, n int, cfg *mpi.Config, fn func(world *mpi.Comm) error) {
	t.Helper()
	worlds, err := mpi.Local(n, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, w := range worlds {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := fn(w.Comm()); err != nil {
				t.Errorf("rank %d: %v", w.Comm().Rank(), err)
			}
			if err := w.Finalize(); err != nil {
				t.Errorf("rank %d: %v", w.Comm().Rank(), err)
			}
		}()
	}
	wg.Wait()
}
