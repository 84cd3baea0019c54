package nodecoll

import (
	"errors"
	"sync"
	"testing"
)

// formRegions lets the ranks of a rig form a region. hosts has the Host of each.
func formRegions(g *rig, hosts []*Host, size int) ([]*Region, []error) {
	regions, errs := make([]*Region, g.size), make([]error, g.size)
	var wg sync.WaitGroup
	for r := range g.size {
		wg.Go(func() {
			regions[r], errs[r] = FormRegion(Config{Rank: r, Size: g.size, Exchange: testRank{g, r}, Host: hosts[r]}, size)
		})
	}
	wg.Wait()
	return regions, errs
}

func TestRegion(t *testing.T) {
	g := newRig(3)
	regions, errs := formRegions(g, []*Host{g.host, g.host, g.host}, 1000)
	for r, err := range errs {
		if err != nil || len(regions[r].Bytes) != 1000 || &regions[r].Bytes[0] != &regions[0].Bytes[0] {
			t.Fatalf("rank %d: %v; want 1000 bytes, the same as those of rank 0", r, err)
		}
	}
	for _, r := range regions {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(g.host.regions) != 0 {
		t.Errorf("%d regions can still be found", len(g.host.regions))
	}
}

// TestRegionUnavailable checks that no rank has a region if one of them cannot map it.
func TestRegionUnavailable(t *testing.T) {
	g := newRig(3)
	_, errs := formRegions(g, []*Host{g.host, g.host, NewHost()}, 1000)
	for r, err := range errs {
		var u *Unavailable
		if !errors.As(err, &u) || u.Rank != 2 {
			t.Errorf("rank %d: %v; want that rank 2 cannot map it", r, err)
		}
	}
}
