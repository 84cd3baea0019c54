package regcache

import (
	"testing"
	"unsafe"
)

func TestCacheLineSizes(t *testing.T) {
	if n := unsafe.Sizeof(bucket{}); n != 64 {
		t.Errorf("a bucket has %d bytes, want 64", n)
	}
	if n := unsafe.Sizeof(region{}); n != 128 {
		t.Errorf("a region has %d bytes, want 128: two cache lines", n)
	}
	if n := unsafe.Offsetof(region{}.queued); n != 64 {
		t.Errorf("the fields of a hit have %d bytes, want 64", n)
	}
	if n := unsafe.Sizeof(useBucket{}); n != 64 {
		t.Errorf("a bucket of the use table has %d bytes, want 64", n)
	}
}
