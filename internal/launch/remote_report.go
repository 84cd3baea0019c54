package launch

// Reports of the agents at the launcher, and the values that agents keep.

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/pmi"
)

// report handles what ranks and hosts of a branch have reached.
func (b *remoteBackend) report(br *branch, body []byte) error {
	r, err := readReport(body, b.cfg.Ranks, len(b.hosts))
	if err != nil {
		return err
	}
	known := -1 // the host that was checked last: consecutive ranks mostly share one
	err = r.about(func(ranks spans) error {
		for rank := range ranks.all() {
			if host := b.cfg.layout.host[rank]; host != known {
				if !br.reaches(uint32(host)) {
					return fmt.Errorf("it reports rank %d, which does not run there", rank)
				}
				known = host
			}
		}
		return nil
	}, func(hosts spans) error {
		for host := range hosts.all() {
			if !br.reaches(uint32(host)) {
				return fmt.Errorf("it reports host %d, which is not reached through it", host)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	server := b.job.server
	server.Reach(pmi.PhaseJoined, r.joined.all())
	server.Reach(pmi.PhaseFinalized, r.finalized.all())
	b.job.post(event{report: r})
	if n := r.fenced.count(); n > 0 {
		server.Enter(r.fence, n)
	}
	for host := range r.ready.all() {
		b.agentReady(host)
	}
	for host := range r.drained.all() {
		b.hostDrained(host)
	}
	return nil
}

// fetch requests a value from the agent of the rank that has put it.
func (b *remoteBackend) fetch(rank int, key string, done func(value string, ok bool)) {
	b.toHost(uint32(b.cfg.layout.host[rank]), frameFetch, getBody(b.fetches.add(done), key))
}
