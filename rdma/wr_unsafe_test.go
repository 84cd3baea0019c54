package rdma

import (
	"errors"
	"testing"
	"unsafe"
)

func TestWorkRequestSize(t *testing.T) {
	if n := unsafe.Sizeof(SendWR{}); n > 128 {
		t.Errorf("SendWR has %d bytes; more than 128 would cost every message a cache line", n)
	}
	if n := unsafe.Sizeof(Completion{}); n > 48 {
		t.Errorf("Completion has %d bytes, expected at most 48", n)
	}
}

func TestMemSharesSlice(t *testing.T) {
	b := []byte("0123456789")
	m := MemOf(b)
	if string(m.Bytes()) != string(b) || m.Len() != 10 || m.Addr() != uint64(uintptr(unsafe.Pointer(&b[0]))) {
		t.Errorf("MemOf(%q) is %q at %#x", b, m.Bytes(), m.Addr())
	}
	if s := m.Slice(3, 5); string(s.Bytes()) != "34" {
		t.Errorf("Slice(3, 5) is %q", s.Bytes())
	}
	m.Bytes()[0] = 'x'
	if b[0] != 'x' {
		t.Error("Bytes should be the memory itself, not a copy")
	}
	if len(Mem{}.Bytes()) != 0 {
		t.Error("the zero Mem should be empty")
	}
}

func TestNamesAndSets(t *testing.T) {
	s := Ops(OpRead, OpPull)
	for o := OpSend; o < opCount; o++ {
		if want := o == OpRead || o == OpPull; s.Has(o) != want {
			t.Errorf("Ops(read, pull).Has(%v) = %v", o, !want)
		}
		if o.String() == "" || o.String() == "op?" {
			t.Errorf("operation %d has no name", o)
		}
	}
	if StatusOK.Err() != nil {
		t.Error("StatusOK should be no error")
	}
	for st := StatusOK + 1; st < statusCount; st++ {
		if err := st.Err(); err == nil || errors.Is(err, ErrAgain) || err.Error() == "rdma: status?" {
			t.Errorf("status %d gives the error %v", st, err)
		}
	}
	if c := (Cost{10, 2}).Plus(Cost{5, 1}); c.Of(4) != 27 {
		t.Errorf("cost of 4 bytes is %v, expected 15 + 3 × 4", c.Of(4))
	}
}
