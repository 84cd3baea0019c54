package engine

import "testing"

func TestScratchPool(t *testing.T) {
	var p scratchPool
	if p.get(0) != nil {
		t.Error("no memory is asked for, and some returned")
	}
	small, large := p.get(100), p.get(5000)
	if len(small) != 100 || cap(small) != 128 || cap(large) != 8192 {
		t.Fatalf("100 and 5000 bytes: capacities %d and %d, want powers of two", cap(small), cap(large))
	}
	p.put(large)
	p.put(small)
	if again := p.get(90); &again[0] != &small[0] {
		t.Error("the smallest block that fits is not reused")
	}
	p = nil
	for n := range 2 * keepTmps {
		p.put(make([]byte, 1<<n))
	}
	if len(p) != keepTmps || p.bytes() < 1<<(2*keepTmps-1) {
		t.Errorf("%d blocks of %d bytes are kept, want the %d largest", len(p), p.bytes(), keepTmps)
	}
	p.put(make([]byte, keepTmp+1))
	if p.bytes() > 1<<(2*keepTmps) {
		t.Error("a block above the limit is kept")
	}
}
