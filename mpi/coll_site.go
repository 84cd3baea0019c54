package mpi

// Data for the choice of algorithms that ranks can only measure locally, but must agree
// on: whether ranks share cores, how many rails there are and how fast they are. Hosts may
// differ; all ranks use the values of rank 0:
//
//	publishSite  rank 0 publishes them before the fence with which ranks join
//	fetchSite    every rank of a job on several hosts reads them after that

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/pmi"
)

// site describes the host of rank 0. All ranks use it for their own, so that they make the
// same choices.
type site struct {
	oversubscribed bool // ranks share cores
	rails          int  // to other hosts
	connects       bool // busy peers get connections, each over one rail
	rate           int  // of a rail, in Mbit/s; 0: unknown
}

const siteKey = "site"

// publishSite publishes the site at rank 0 of a job on several hosts. Peers see it after
// the fence with which they join.
func publishSite(cfg *Config, client pmi.Client, lanes []engine.LaneConfig, oversubscribed bool) error {
	if client.Rank() != 0 || client.LocalSize() == client.Size() {
		return nil
	}
	s := site{oversubscribed: oversubscribed, rails: 1}
	for _, l := range lanes {
		if !l.Local && !strings.HasPrefix(l.Device.Attr().Name, "ofi:") { // libfabric selects its own interface
			s.rate = slowestRail(cfg)
		}
		s.rails = max(s.rails, l.Device.Caps().Rails)
		s.connects = s.connects || l.Device.Attr().Name == "hybrid"
	}
	if err := client.Put(siteKey, fmt.Appendf(nil, "%t %d %t %d", s.oversubscribed, s.rails, s.connects, s.rate)); err != nil {
		return fmt.Errorf("mpi: publish the description of rank 0's host: %w", err)
	}
	return nil
}

// fetchSite returns the site that rank 0 has published.
func fetchSite(ctx context.Context, client pmi.Client) (s site, err error) {
	if client.LocalSize() == client.Size() {
		return s, nil
	}
	text, err := client.Get(ctx, 0, siteKey)
	if err != nil {
		return s, fmt.Errorf("mpi: fetch the description of rank 0's host: %w", err)
	}
	if _, err := fmt.Sscanf(string(text), "%t %d %t %d", &s.oversubscribed, &s.rails, &s.connects, &s.rate); err != nil {
		return s, fmt.Errorf("mpi: rank 0 describes its host as %q: %w; run all ranks from the same build", text, err)
	}
	return s, nil
}

// grantTime is how long a port takes for the bytes that may be under way to the ranks of its
// host. It is half of the queue of a switch port in our labs (internal/lab), of which a share
// belongs to other traffic.
const grantTime = 4 * time.Millisecond

// grant returns the bytes that may be under way to this rank in a collective in which several
// ranks send to one; 0: no limit.
func (w *World) grant() int {
	bytes := float64(w.site.rate) * 1e6 / 8 * grantTime.Seconds() * float64(max(w.site.rails, 1))
	return int(bytes) / w.client.LocalSize()
}

// slowestRail returns the rate of the slowest interface to other hosts, in Mbit/s, or 0 if
// it is not known. That some may not lead to other hosts after all does not matter for an
// estimate.
func slowestRail(cfg *Config) (rate int) {
	candidates, err := chooseRails(cfg, true)
	if err != nil {
		return 0 // the device has reported it
	}
	for i := range candidates {
		c := &candidates[i]
		if r := c.Rate(); c.Taken && r > 0 && (rate == 0 || r < rate) {
			rate = r
		}
	}
	return rate
}
