package mpi_test

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/rma"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// byteWin is a window of bytes of the C interface.
type byteWin struct {
	*mpi.Win[byte]
	bytes cbinding.Win
}

func newByteWin(c *mpi.Comm, cfg cbinding.WinConfig) (*byteWin, error) {
	b, err := cbinding.Get().NewWin(c, cfg)
	if err != nil {
		return nil, err
	}
	return &byteWin{b.Window().(*mpi.Win[byte]), b}, nil
}

// Codes of the elements of byteElements.
const (
	word     = 1 // a number that the processor updates
	halfWord = 2 // one that it does not
)

func byteElements() []rma.Elements {
	order := binary.NativeEndian
	return []rma.Elements{
		{Code: word, Size: 4, Kind: dtype.Int32, Known: true, Custom: func(op rma.Op, inout, in []byte) bool {
			for i := 0; i < len(inout); i += 4 {
				order.PutUint32(inout[i:], order.Uint32(inout[i:])+order.Uint32(in[i:]))
			}
			return op == rma.Op(dtype.OpSum)
		}},
		{Code: halfWord, Size: 2, Custom: func(op rma.Op, inout, in []byte) bool {
			for i := 0; i < len(inout); i += 2 {
				order.PutUint16(inout[i:], order.Uint16(inout[i:])+order.Uint16(in[i:]))
			}
			return op == rma.Op(dtype.OpSum)
		}},
	}
}

// All ranks add to elements of rank 0, each call with elements of its own type.
func TestByteWinAccumulates(t *testing.T) {
	const ranks, size = 3, 64
	order := binary.NativeEndian
	for _, apart := range []bool{false, true} {
		mpitest.Run(t, ranks, func(t *testing.T, c *mpi.Comm) {
			cfg := cbinding.WinConfig{Bytes: size, Elements: byteElements()}
			if apart { // by request
				mpi.KeepWindowsApart(c, true)
				defer mpi.KeepWindowsApart(c, false)
				cfg.Existing, cfg.Memory = true, make([]byte, size)
			}
			w, err := newByteWin(c, cfg)
			if err != nil {
				t.Fatal(err)
			}
			must := func(err error) {
				if err != nil {
					t.Error(err)
				}
			}
			must(w.Fence())
			call := cbinding.Access{Name: "test"}
			four, two := make([]byte, 8), make([]byte, 4)
			order.PutUint32(four, 1)
			order.PutUint32(four[4:], 1<<20)
			order.PutUint16(two[2:], 7)
			must(w.bytes.Combine(call, word, rma.Op(dtype.OpSum), four, nil, 0, 8))
			must(w.bytes.Combine(call, halfWord, rma.Op(dtype.OpSum), two, nil, 0, 32))
			if err := w.bytes.Combine(call, word, rma.Op(dtype.OpMaxLoc), four, nil, 0, 8); !errors.Is(err, mpi.ErrOp) {
				t.Errorf("an operation that is not defined returns %v", err)
			}
			must(w.Fence())
			must(w.FenceEnd())
			if m := w.Memory(); c.Rank() == 0 && (order.Uint32(m[8:]) != ranks || order.Uint32(m[12:]) != ranks<<20 || order.Uint16(m[34:]) != 7*ranks) {
				t.Errorf("the memory is %v", m)
			}
			must(w.LockAll())
			was := make([]byte, 4)
			tr, err := w.bytes.BeginRequest("test", 0)
			must(err)
			must(w.bytes.Combine(tr, word, rma.NoOp, nil, was, 0, 8))
			r := w.bytes.Request(tr).(mpi.Request)
			if _, err := r.Wait(); err != nil || order.Uint32(was) != ranks {
				t.Errorf("the request reads %v, error %v", was, err)
			}
			must(w.UnlockAll())
			must(w.Free())
		})
	}
}

// TestNoCheckAcquiresNoLock checks that a rank can lock memory exclusively while its owner is in an
// epoch of LockAllNoCheck, and waits there for what the other rank writes.
func TestNoCheckAcquiresNoLock(t *testing.T) {
	for _, apart := range []bool{false, true} {
		mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
			cfg := cbinding.WinConfig{Bytes: 4, Elements: byteElements()}
			if apart { // by request
				mpi.KeepWindowsApart(c, true)
				defer mpi.KeepWindowsApart(c, false)
				cfg.Existing, cfg.Memory = true, make([]byte, 4)
			}
			w, err := newByteWin(c, cfg)
			noError(t, err, "NewByteWin")
			var in [1]byte
			if c.Rank() == 0 {
				noError(t, w.bytes.LockAllNoCheck(), "LockAllNoCheck")
				noError(t, c.Barrier(), "Barrier")
				_, err := mpi.Recv(c, in[:], 1, 0) // after the lock of rank 1
				noError(t, err, "Recv")
				noError(t, w.UnlockAll(), "UnlockAll")
			} else {
				noError(t, c.Barrier(), "Barrier")
				noError(t, w.Lock(0, mpi.LockExclusive), "Lock")
				noError(t, w.Put([]byte{7}, 0, 0), "Put")
				noError(t, w.Unlock(0), "Unlock")
				noError(t, mpi.Send(c, in[:], 0, 0), "Send")
				noError(t, w.bytes.LockNoCheck(0), "LockNoCheck")
				noError(t, w.Get(in[:], 0, 0), "Get")
				noError(t, w.Unlock(0), "Unlock")
				if in[0] != 7 {
					t.Errorf("Unlock must complete the get of 7, got %d", in[0])
				}
			}
			noError(t, w.Free(), "Free")
		})
	}
}

// The displacement in a dynamic window of bytes is an address of the target.
func TestByteWinDynamic(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		w, err := newByteWin(c, cbinding.WinConfig{Dynamic: true, Elements: byteElements()})
		if err != nil {
			t.Fatal(err)
		}
		mem := make([]byte, 32)
		mine := reflect.ValueOf(mem).Pointer()
		if err := w.bytes.AttachAt(mine, mem); err != nil {
			t.Fatal(err)
		}
		if err := w.bytes.AttachAt(mine, mem); !errors.Is(err, mpi.ErrRMAAttach) {
			t.Errorf("attaching memory twice returns %v", err)
		}
		all := make([]int, 2)
		if err := mpi.Allgather(c, []int{int(mine)}, all); err != nil {
			t.Fatal(err)
		}
		peer := 1 - c.Rank()
		steps := []func() error{
			w.Fence,
			func() error { return w.Put([]byte{5, 6}, peer, all[peer]+30) },
			w.Fence,
			c.Barrier,
			func() error { return w.bytes.DetachAt(mine) },
			w.FenceEnd,
			w.Free,
		}
		for i, step := range steps {
			if err := step(); err != nil {
				t.Errorf("step %d: %v", i, err)
			}
		}
		if mem[30] != 5 || mem[31] != 6 {
			t.Errorf("the memory is %v", mem)
		}
	})
}

// The parts of a contiguous shared window follow each other.
func TestByteWinContiguous(t *testing.T) {
	if !mpitest.Launched() {
		t.Skip("ranks of one process have memory of their own")
	}
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		node, err := c.SplitType(mpi.ByNode, 0)
		noError(t, err, "SplitType")
		w, err := newByteWin(node, cbinding.WinConfig{Shared: true, Contiguous: true, Bytes: 10 + node.Rank()})
		if err != nil {
			wantClass(t, err, mpi.ErrRMAShared, "NewByteWin without shared memory")
			noError(t, node.Free(), "Free")
			return
		}
		at := uintptr(0)
		for r := range node.Size() {
			mem, err := w.Query(r)
			if err != nil || len(mem) != 10+r {
				t.Fatalf("the memory of rank %d has %d bytes, error %v", r, len(mem), err)
			}
			begin := reflect.ValueOf(mem).Pointer()
			if r > 0 && begin != at {
				t.Errorf("the memory of rank %d begins %d bytes behind that of the rank before", r, begin-at)
			}
			at = begin + uintptr(len(mem))
		}
		noError(t, w.Free(), "Free")
		noError(t, node.Free(), "Free")
	})
}
