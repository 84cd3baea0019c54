package nodecoll

import (
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
)

// Ranks with equal calls have equal signatures. Any difference, also in an earlier call,
// changes them, and Compare finds the first one.
func TestHistory(t *testing.T) {
	calls := []coll.Call{coll.MakeCall(coll.Bcast, coll.Blocking, 0, 64), coll.MakeCall(coll.Allreduce, coll.Blocking, coll.NoRoot, 8), coll.MakeCall(coll.Barrier, coll.Started, coll.NoRoot, 0)}
	var a, b History
	for range 10 {
		for _, c := range calls {
			s := a.Add(c)
			if s != b.Add(c) || s == 0 || s.Kind() != c.Kind() {
				t.Fatalf("signature %x of %v", s, c)
			}
		}
	}
	if d, differ := a.Compare(b.Append(nil)); differ {
		t.Errorf("equal histories differ in %+v", d)
	}
	for _, other := range []coll.Call{coll.MakeCall(coll.Bcast, coll.Blocking, 1, 64), coll.MakeCall(coll.Bcast, coll.Blocking, 0, 56), coll.MakeCall(coll.Bcast, coll.Started, 0, 64), coll.MakeCall(coll.Reduce, coll.Blocking, 0, 64)} {
		x, y := a, b
		if x.Add(calls[0]) == y.Add(other) {
			t.Errorf("%v and %v have one signature", calls[0], other)
		}
		if x.Add(calls[1]) == y.Add(calls[1]) {
			t.Errorf("the call after %v and %v has one signature", calls[0], other)
		}
		d, differ := x.Compare(y.Append(nil))
		if !differ || d.Number != 31 || d.Mine.String() != "Bcast of 64 bytes with root 0" || d.Theirs.String() != other.String() {
			t.Errorf("%v against %v: difference %v, %v", calls[0], other, d, differ)
		}
	}
	// One more call is no difference yet; calls that are no longer recorded are ignored.
	x := a
	for range Kept + 1 {
		x.Add(calls[0])
		if d, differ := a.Compare(x.Append(nil)); differ {
			t.Fatalf("a rank that is ahead differs in %+v", d)
		}
	}
	for range 300 { // also if the low bits of their numbers are equal
		x.Add(calls[1])
		if d, differ := a.Compare(x.Append(nil)); differ {
			t.Fatalf("a rank that is far ahead differs in %+v", d)
		}
		if d, differ := x.Compare(a.Append(nil)); differ {
			t.Fatalf("a rank that is far behind differs in %+v", d)
		}
	}
	if _, differ := a.Compare([]byte("short")); differ {
		t.Error("a short encoding compares as different")
	}
}

func TestSignRoot(t *testing.T) {
	var a, b History
	s := a.Add(coll.MakeCall(coll.Bcast, coll.Blocking, 3, 8))
	if root, ok := s.Root(); !ok || root != 3 || s.Describe() != "Bcast with root 3" {
		t.Errorf("%s", s.Describe())
	}
	if b.Add(coll.MakeCall(coll.Bcast, coll.Blocking, 2, 8)).Describe() == s.Describe() {
		t.Error("roots 3 and 2 are the same")
	}
	if s := a.Add(coll.MakeCall(coll.Bcast, coll.Blocking, 100, 8)); s.Describe() != "Bcast" {
		t.Errorf("root 100: %s", s.Describe())
	}
}

// The barrier of Finalize matches no other, and errors name it.
func TestFinalizeIsNoBarrier(t *testing.T) {
	var a, b History
	barrier, leave := coll.MakeCall(coll.Barrier, coll.Blocking, coll.NoRoot, 0), coll.MakeCall(coll.Finalize, coll.Blocking, coll.NoRoot, 0)
	if x, y := a.Add(barrier), b.Add(leave); x == y || x.Describe() != "Barrier" || y.Describe() != "Finalize" || leave.String() != "Finalize" {
		t.Errorf("signatures %x (%s) and %x (%s), and the call %s", x, x.Describe(), y, y.Describe(), leave)
	}
}
