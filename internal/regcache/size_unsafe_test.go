package regcache

import (
	"testing"
	"unsafe"
)

func TestAHitTouchesOneLineOfABucketAndOneOfARegion(t *testing.T) {
	if n := unsafe.Sizeof(bucket{}); n != 64 {
		t.Errorf("a bucket has %d bytes, want 64", n)
	}
	if n := unsafe.Sizeof(region{}); n != 128 {
		t.Errorf("a region has %d bytes, want 128: two lines, so that none shares its first", n)
	}
	if n := unsafe.Offsetof(region{}.queued); n != 64 {
		t.Errorf("what a hit touches has %d bytes, want 64", n)
	}
	if n := unsafe.Sizeof(useBucket{}); n != 64 {
		t.Errorf("a bucket of the use table has %d bytes, want 64", n)
	}
}
