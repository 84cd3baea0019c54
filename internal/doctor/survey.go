package doctor

// The survey of all hosts: start doctors, read facts and clocks, open ports, connect to
// them. Each step runs on all hosts concurrently and has a time limit.

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Plan describes which hosts to survey, and how.
type Plan struct {
	Config
	// Hosts are the other hosts, as named by the user. The asking host is always part of
	// the survey; if it is among them, it gets that name.
	Hosts []string
	// Command returns the command line that runs an answering doctor on a host, or nil
	// if the name is that of this host.
	Command func(host string) []string
	// Timeout limits each step on each host. Default: 20 s, because ssh to a host that
	// waits for its resolver takes ten.
	Timeout time.Duration
}

const (
	defaultTimeout = 20 * time.Second
	clockQuestions = 5
)

// host is a host of the survey. One goroutine at a time writes its visit.
type host struct {
	visit   Visit
	here    *answerer // not nil for this host
	there   *session  // for another host; nil after a failure
	targets []Target
	trials  []Trial
}

// Ask performs the survey. It fails only if ctx ends; the visit of an unreachable host
// holds the error.
func (p Plan) Ask(ctx context.Context) (*Survey, error) {
	if p.Timeout == 0 {
		p.Timeout = defaultTimeout
	}
	hosts := p.hostsToAsk()
	defer func() {
		each(hosts, func(h *host) { h.close() })
	}()
	each(hosts, func(h *host) { p.step(ctx, h, p.connect) })
	hosts = dropSelf(hosts)
	if len(hosts) > 1 {
		each(hosts, func(h *host) { p.step(ctx, h, readClock) })
		each(hosts, func(h *host) { p.step(ctx, h, listen) })
		each(hosts, func(h *host) {
			p.step(ctx, h, func(ctx context.Context, h *host) error { return visitOthers(ctx, h, hosts) })
		})
	}
	s := &Survey{}
	for _, h := range hosts {
		s.Hosts = append(s.Hosts, h.visit)
		s.Trials = append(s.Trials, h.trials...)
	}
	return s, ctx.Err()
}

// hostsToAsk returns the hosts of the survey, this host first.
func (p Plan) hostsToAsk() []*host {
	self := &host{visit: Visit{Name: "this host", Here: true}, here: &answerer{cfg: p.Config}}
	hosts := []*host{self}
	for _, name := range p.Hosts {
		if p.Command(name) == nil {
			self.visit.Name = name
			continue
		}
		hosts = append(hosts, &host{visit: Visit{Name: name}})
	}
	return hosts
}

func each(hosts []*host, do func(*host)) {
	var busy sync.WaitGroup
	for _, h := range hosts {
		busy.Go(func() { do(h) })
	}
	busy.Wait()
}

// step runs do with a time limit, unless the host has already failed.
func (p Plan) step(ctx context.Context, h *host, do func(context.Context, *host) error) {
	if h.visit.Error != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	if err := do(ctx, h); err != nil {
		h.visit.Error = err.Error()
		h.visit.Facts = nil
	}
}

// connect starts a doctor on a host and requests the facts.
func (p Plan) connect(ctx context.Context, h *host) error {
	start := time.Now()
	if h.here == nil {
		var err error
		if h.there, err = startSession(ctx, p.Command(h.visit.Name)); err != nil {
			return err
		}
		h.visit.Took = time.Since(start)
	}
	r, err := h.ask(ctx, question{Ask: "facts", Provider: p.Provider, Interface: p.Interface})
	if err == nil && r.Facts == nil {
		err = fmt.Errorf("another version of muster answers: no facts")
	}
	h.visit.Facts = r.Facts
	return err
}

func (h *host) ask(ctx context.Context, q question) (reply, error) {
	if h.here != nil {
		return h.here.answer(ctx, q), nil
	}
	return h.there.ask(ctx, q)
}

func (h *host) close() {
	if h.here != nil {
		h.here.close()
	}
	if h.there != nil {
		_ = h.there.close() // the result no longer matters
	}
}

// dropSelf merges this host with a listed host of the same identity. This host gets the
// listed name and the measured time.
func dropSelf(hosts []*host) []*host {
	self := hosts[0]
	for i, h := range hosts[1:] {
		if h.visit.Facts != nil && h.visit.Facts.Identity == self.visit.Facts.Identity {
			self.visit.Name, self.visit.Took = h.visit.Name, h.visit.Took
			h.close()
			return append(hosts[:i+1:i+1], hosts[i+2:]...)
		}
	}
	return hosts
}

// readClock compares clocks as NTP does: the answer with the shortest round trip is the
// best.
func readClock(ctx context.Context, h *host) error {
	if h.here != nil {
		return nil
	}
	for i := range clockQuestions {
		start := time.Now()
		r, err := h.ask(ctx, question{Ask: "clock"})
		if err != nil {
			return err
		}
		round := time.Since(start)
		if unsure := round / 2; i == 0 || unsure < h.visit.Unsure {
			h.visit.Unsure = unsure
			h.visit.Offset = time.Unix(0, r.Clock).Sub(start.Add(unsure))
		}
	}
	return nil
}

func listen(ctx context.Context, h *host) error {
	r, err := h.ask(ctx, question{Ask: "listen"})
	h.targets = r.Targets
	return err
}

func visitOthers(ctx context.Context, h *host, all []*host) error {
	var targets []Target
	for _, other := range all {
		if other == h {
			continue
		}
		for _, p := range other.targets {
			p.Host = other.visit.Name
			targets = append(targets, p)
		}
	}
	r, err := h.ask(ctx, question{Ask: "try", Name: h.visit.Name, Targets: targets})
	h.trials = r.Trials
	return err
}
