package mpi_test

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/rma"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// Codes of the elements of byteAtoms.
const (
	word     = 1 // a number that the processor updates
	halfWord = 2 // one that it does not
)

func byteAtoms() []mpi.Atom {
	order := binary.NativeEndian
	return []mpi.Atom{
		{Code: word, Size: 4, Number: reflect.Int32, Combine: func(op mpi.AtomOp, inout, in []byte) bool {
			for i := 0; i < len(inout); i += 4 {
				order.PutUint32(inout[i:], order.Uint32(inout[i:])+order.Uint32(in[i:]))
			}
			return op == mpi.AtomSum
		}},
		{Code: halfWord, Size: 2, Combine: func(op mpi.AtomOp, inout, in []byte) bool {
			for i := 0; i < len(inout); i += 2 {
				order.PutUint16(inout[i:], order.Uint16(inout[i:])+order.Uint16(in[i:]))
			}
			return op == mpi.AtomSum
		}},
	}
}

// All ranks add to elements of rank 0, each call with elements of its own type.
func TestByteWinAccumulates(t *testing.T) {
	const ranks, size = 3, 64
	order := binary.NativeEndian
	for _, apart := range []bool{false, true} {
		mpitest.Run(t, ranks, func(t *testing.T, c *mpi.Comm) {
			cfg := mpi.ByteWinConfig{Bytes: size, Atoms: byteAtoms()}
			if apart { // by request
				mpi.KeepWindowsApart(c, true)
				defer mpi.KeepWindowsApart(c, false)
				cfg.Existing, cfg.Memory = true, make([]byte, size)
			}
			w, err := mpi.NewByteWin(c, cfg)
			if err != nil {
				t.Fatal(err)
			}
			must := func(err error) {
				if err != nil {
					t.Error(err)
				}
			}
			must(w.Fence())
			four, two := make([]byte, 8), make([]byte, 4)
			order.PutUint32(four, 1)
			order.PutUint32(four[4:], 1<<20)
			order.PutUint16(two[2:], 7)
			must(w.Begin("test").Accumulate(word, mpi.AtomSum, four, nil, 0, 8))
			must(w.Begin("test").Accumulate(halfWord, mpi.AtomSum, two, nil, 0, 32))
			if err := w.Begin("test").Accumulate(word, mpi.AtomMaxLoc, four, nil, 0, 8); !errors.Is(err, mpi.ErrOp) {
				t.Errorf("an operation that is not defined returns %v", err)
			}
			must(w.Fence())
			must(w.FenceEnd())
			if m := w.Memory(); c.Rank() == 0 && (order.Uint32(m[8:]) != ranks || order.Uint32(m[12:]) != ranks<<20 || order.Uint16(m[34:]) != 7*ranks) {
				t.Errorf("the memory is %v", m)
			}
			must(w.LockAll())
			was := make([]byte, 4)
			tr, err := w.BeginRequest("test", 0)
			must(err)
			must(tr.Accumulate(word, mpi.AtomNoOp, nil, was, 0, 8))
			r := tr.Request()
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
			cfg := mpi.ByteWinConfig{Bytes: 4, Atoms: byteAtoms()}
			if apart { // by request
				mpi.KeepWindowsApart(c, true)
				defer mpi.KeepWindowsApart(c, false)
				cfg.Existing, cfg.Memory = true, make([]byte, 4)
			}
			w, err := mpi.NewByteWin(c, cfg)
			noError(t, err, "NewByteWin")
			var in [1]byte
			if c.Rank() == 0 {
				noError(t, w.LockAllNoCheck(), "LockAllNoCheck")
				noError(t, mpi.Barrier(c), "Barrier")
				_, err := mpi.Recv(c, in[:], 1, 0) // after the lock of rank 1
				noError(t, err, "Recv")
				noError(t, w.UnlockAll(), "UnlockAll")
			} else {
				noError(t, mpi.Barrier(c), "Barrier")
				noError(t, w.Lock(0, true), "Lock")
				noError(t, w.Put([]byte{7}, 0, 0), "Put")
				noError(t, w.Unlock(0), "Unlock")
				noError(t, mpi.Send(c, in[:], 0, 0), "Send")
				noError(t, w.LockNoCheck(0), "LockNoCheck")
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
		w, err := mpi.NewByteWin(c, mpi.ByteWinConfig{Dynamic: true, Atoms: byteAtoms()})
		if err != nil {
			t.Fatal(err)
		}
		mem := make([]byte, 32)
		mine := reflect.ValueOf(mem).Pointer()
		if err := w.AttachAt(mine, mem); err != nil {
			t.Fatal(err)
		}
		if err := w.AttachAt(mine, mem); !errors.Is(err, mpi.ErrRMAAttach) {
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
			func() error { return mpi.Barrier(c) },
			func() error { return w.DetachAt(mine) },
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
		w, err := mpi.NewByteWin(node, mpi.ByteWinConfig{Shared: true, Contiguous: true, Bytes: 10 + node.Rank()})
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

// Operations have the numbers that requests carry.
func TestAtomOps(t *testing.T) {
	for got, want := range map[mpi.AtomOp]int{
		mpi.AtomMaxLoc: int(dtype.OpMaxLoc), mpi.AtomBitAnd: int(dtype.OpBitAnd), mpi.AtomReplace: int(rma.Replace), mpi.AtomNoOp: int(rma.NoOp),
	} {
		if int(got) != want {
			t.Errorf("operation %d has number %d in package rma", got, want)
		}
	}
}
