package mpi

// The choice of an algorithm for a call. Package coll has the algorithms and their cost
// functions; this file provides the cost of messages between the ranks of a communicator,
// the nodes of the ranks, and the user's settings (Config.Collective, Config.Tuning). All
// ranks must make the same choice without communication, so it may depend only on data
// that all ranks share.

import (
	"fmt"
	"os"
	"strings"

	"github.com/muster-mpi/muster/internal/bytesize"
	"github.com/muster-mpi/muster/internal/coll"
)

// The cost of a byte without a message, in seconds. Only the ratio to the cost of messages
// matters. reduceByte is that of the vector kernels of package dtype.
const (
	copyByte   = 0.06e-9
	reduceByte = 0.021e-9
)

// The cost of a message inside a node if there are several nodes. A rank that is alone on
// its node cannot measure it, and must choose like the others.
const (
	nearStartup = 300e-9
	nearByte    = 0.13e-9
)

// farStarts is how many messages to other nodes a rank starts in the time of one: most of
// that time is latency, which messages share.
const farStarts = 4

// farEager is about the longest message to another node that is sent eagerly.
const farEager = 12 << 10

// sharedCoresEager is the same where ranks share cores: a rendezvous takes two time slices
// (see p2p.Config).
const sharedCoresEager = 64 << 10

// farStripe is the longest message that goes over one rail if there are several
// (decision 024).
const farStripe = 8 << 10

// The cost of a message where ranks share the cores of their node: the receiver must be
// woken. Inside the node, other ranks have run meanwhile.
const (
	awakeFar  = 30e-6
	awakeNear = 8e-6
	// awakeStarts is how many messages a rank handles when it is woken.
	awakeStarts = 16
	// awakeMessage is the time of the processor for each of them, at both ends: measured
	// with alltoall of 16 ranks on two cores.
	awakeMessage = 6e-6
)

// chooser holds the data of a communicator for its choices.
type chooser struct {
	ready bool
	nodes *coll.Topology // nil: all ranks are on one node
	model coll.Model
}

// nodesOf returns which ranks share a node, or nil if all do.
func (h *chooser) nodesOf(c *Comm) *coll.Topology {
	h.prepare(c)
	return h.nodes
}

// prepare examines the ranks of a communicator, once.
func (h *chooser) prepare(c *Comm) {
	if h.ready {
		return
	}
	h.ready = true
	// If there are several nodes, algorithms spend most of their time on messages
	// between them.
	peer, far := c.aPeer()
	if far {
		h.nodes = coll.TopologyOf(c.size, func(r int) int { return c.w.client.Node(c.world(r)) }, c.w.site.rails)
	}
	cost := c.e.Attr(c.worldOrAnyone(peer)).SendCost
	h.model = coll.Model{Startup: cost.Fixed * 1e-9, PerByte: cost.PerByte * 1e-9, Copy: copyByte, Reduce: reduceByte, Ports: 1}
	if h.nodes != nil {
		h.model.Near = coll.Near{Startup: nearStartup, PerByte: nearByte}
		h.model.Ports = h.nodes.Rails // T2 3.4: k ports for k rails
		h.model.Starts, h.model.TimeSlices = farStarts, c.w.site.oversubscribed
		h.model.Eager, h.model.Stripe = farEager, farStripe
		if rate := c.w.site.rate; rate > 0 {
			h.model.Cable = 8 / (float64(rate) * 1e6)
		}
		if h.model.TimeSlices {
			h.model.Startup, h.model.Near.Startup = max(h.model.Startup, awakeFar), awakeNear
			h.model.Starts, h.model.Eager, h.model.Message = awakeStarts, sharedCoresEager, awakeMessage
			if c.w.site.connects { // each over one rail
				h.model.Cables, h.model.Ports, h.model.Stripe = h.model.Ports, 1, 0
			}
		}
	}
}

// aPeer returns a rank of c on another node, or, if there is none, another rank or -1.
func (c *Comm) aPeer() (rank int, far bool) {
	if c.w.client.LocalSize() == c.w.client.Size() { // the job has one node
		switch {
		case c.size < 2:
			return -1, false
		case c.rank == 0:
			return 1, false
		}
		return 0, false
	}
	here, near := c.w.client.Node(c.world(c.rank)), -1
	for r := range c.size {
		switch {
		case c.w.client.Node(c.world(r)) != here:
			return r, true
		case r != c.rank:
			near = r
		}
	}
	return near, false
}

// chooseLocked selects the algorithm for a call. It ignores whether the call is in
// place: one rank may pass the same slice twice where another passes two, and both must
// make the same choice.
func (c *Comm) chooseLocked(s *coll.Shape) (coll.Choice, error) {
	h := &c.plans.choice
	h.prepare(c)
	asked := *s
	asked.InPlace = false
	return coll.Choose(&asked, &h.model, c.tuning())
}

// readTuning returns the table of the user's settings: first the algorithms that
// Config.Collective forces, then the file that Config.Tuning names.
func readTuning(cfg *Config) (*coll.Tuning, error) {
	table, err := parseForced(cfg.Collective)
	if err != nil {
		return nil, fmt.Errorf("mpi: Config.Collective (MUSTER_COLLECTIVE) is %q: %w", cfg.Collective, err)
	}
	if cfg.Tuning == "" {
		return table, nil
	}
	text, err := os.ReadFile(cfg.Tuning)
	if err != nil {
		return nil, fmt.Errorf("mpi: read the tuning table that Config.Tuning (MUSTER_TUNING) names: %w; muster tune writes one, and all hosts need it", err)
	}
	file, err := coll.ParseTuning(text)
	if err != nil {
		return nil, fmt.Errorf("mpi: the tuning table %s (MUSTER_TUNING): %w", cfg.Tuning, err)
	}
	if table == nil {
		return file, nil
	}
	table.Rules = append(table.Rules, file.Rules...)
	return table, nil
}

// parseForced parses "allreduce=ring,bcast=chain:segment=8192": the algorithm of a collective,
// and those of its parameters that differ from the default.
func parseForced(s string) (*coll.Tuning, error) {
	if s == "" {
		return nil, nil
	}
	table := &coll.Tuning{About: "Config.Collective"}
	for _, part := range strings.Split(s, ",") {
		kind, rest, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return nil, fmt.Errorf("%q is not a collective and its algorithm; write allreduce=ring, several with commas", part)
		}
		if rest == coll.Segment.Name {
			k, err := coll.ParseKind(kind)
			if err == nil && !coll.Segment.Supports(k) {
				err = fmt.Errorf("%s has no form in shared memory; name another algorithm", kind)
			}
			if err != nil {
				return nil, err
			}
			continue // see coll_node.go
		}
		rule, err := forcedRule(kind, rest)
		if err != nil {
			return nil, err
		}
		table.Rules = append(table.Rules, rule)
	}
	return table, nil
}

func forcedRule(kind, rest string) (rule coll.Rule, err error) {
	if rule.Kind, err = coll.ParseKind(kind); err != nil {
		return rule, err
	}
	words := strings.Split(rest, ":")
	if rule.Algorithm, err = coll.Find(rule.Kind, words[0]); err != nil {
		return rule, err
	}
	values := map[string]int{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		n, err := bytesize.Parse(value)
		if err != nil || int64(int(n)) != n {
			return rule, fmt.Errorf("%q of %s is not a parameter and its number; write segment=8192 or segment=8K", word, words[0])
		}
		values[name] = int(n)
	}
	rule.Params, err = rule.Algorithm.ParseParams(values)
	return rule, err
}
