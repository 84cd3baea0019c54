package mpi

// What all ranks must know alike to choose algorithms, and only measure each for
// itself: whether ranks share cores, and how many rails there are. Hosts may differ;
// what counts is what rank 0 found on its own:
//
//	publishSite   rank 0 publishes it before the fence with which ranks join
//	fetchSite    every rank of a job on several hosts gets it after that

import (
	"context"
	"fmt"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/pmi"
)

// site is what rank 0 knows of its host, and all ranks take for true of theirs, so
// that they choose alike.
type site struct {
	oversubscribed bool // ranks share cores
	rails          int  // that lead to other hosts
}

const siteKey = "site"

// publishSite has rank 0 of a job on several hosts publish it. Peers see it after the
// fence with which they join.
func publishSite(client pmi.Client, lanes []engine.LaneConfig, oversubscribed bool) error {
	if client.Rank() != 0 || client.LocalSize() == client.Size() {
		return nil
	}
	s := site{oversubscribed: oversubscribed, rails: 1}
	for _, l := range lanes {
		if d, ok := l.Device.(interface{ Rails() int }); ok {
			s.rails = d.Rails()
		}
	}
	if err := client.Put(siteKey, fmt.Appendf(nil, "%t %d", s.oversubscribed, s.rails)); err != nil {
		return fmt.Errorf("mpi: publish what rank 0 knows of its host: %w", err)
	}
	return nil
}

// fetchSite gets it.
func fetchSite(ctx context.Context, client pmi.Client) (s site, err error) {
	if client.LocalSize() == client.Size() {
		return s, nil
	}
	text, err := client.Get(ctx, 0, siteKey)
	if err != nil {
		return s, fmt.Errorf("mpi: ask what rank 0 knows of its host: %w", err)
	}
	if _, err := fmt.Sscanf(string(text), "%t %d", &s.oversubscribed, &s.rails); err != nil {
		return s, fmt.Errorf("mpi: rank 0 says %q of its host: %w; run all ranks from the same build", text, err)
	}
	return s, nil
}
