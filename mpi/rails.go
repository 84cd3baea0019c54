package mpi

// The choice of interfaces for software iWARP between hosts: chooseRails selects candidates
// by name and kind, and provenRails makes hosts dial each other over all of them. The device
// uses those over which a host has answered.
//
// The first rank of each host acts for it. It publishes a card with the addresses of its
// interfaces, dials the next host, and reports which interfaces have answered. Rank 0
// decides for all. This costs two more fences at the start of a job on several hosts, one
// round trip if all interfaces answer, and half a second if one leads nowhere.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/devices"
	"github.com/muster-mpi/muster/internal/netprobe"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/internal/settings"
	"github.com/muster-mpi/muster/mpi/internal/hook"
)

// chooseRails returns the interfaces that software iWARP uses, as far as one host can
// determine, with the reasons. A job on one host needs none of them.
func chooseRails(cfg *Config, apart bool) ([]netprobe.Candidate, error) {
	return chooseFrom(netprobe.Interfaces, cfg, apart)
}

// chooseFrom lists the interfaces again while this host has none, and may get one.
func chooseFrom(interfaces func() ([]netprobe.Interface, error), cfg *Config, apart bool) ([]netprobe.Candidate, error) {
	for end := time.Now().Add(interfaceTimeout); ; time.Sleep(interfaceInterval) {
		list, err := interfaces()
		if err != nil {
			return nil, err
		}
		candidates, err := chooseAmong(cfg, apart, list)
		if !mayComeUp(cfg, apart, candidates) || time.Now().After(end) {
			return candidates, err
		}
	}
}

// An interface that was just created or switched on gets its address and its carrier within
// a second or so.
const (
	interfaceTimeout  = 2 * time.Second
	interfaceInterval = 20 * time.Millisecond
)

// mayComeUp reports whether this host cannot reach others now, and has an interface that is
// not ready.
func mayComeUp(cfg *Config, apart bool, candidates []netprobe.Candidate) bool {
	waits := false
	for i := range candidates {
		c := &candidates[i]
		if c.Taken && !c.Loopback || c.Possible && proves(cfg, apart) {
			return false
		}
		waits = waits || !c.Loopback && (!c.Up || !c.Running || !c.Address.IsValid())
	}
	return apart && waits
}

func chooseAmong(cfg *Config, apart bool, list []netprobe.Interface) ([]netprobe.Candidate, error) {
	var want []string
	switch {
	case cfg.Interface != "":
		want = strings.Split(cfg.Interface, ",")
	case !apart:
		want = []string{"127.0.0.0/8"}
	}
	candidates, err := netprobe.Choose(list, want)
	if !proves(cfg, apart) {
		oneRail(cfg, candidates)
	}
	usable := func(c netprobe.Candidate) bool { return c.Taken || c.Possible && apart }
	if err == nil && !slices.ContainsFunc(candidates, usable) {
		err = fmt.Errorf("no interface leads to other hosts: %s", netprobe.Summary(candidates))
	}
	return candidates, err
}

// oneRail keeps one interface for a channel that cannot use more.
func oneRail(cfg *Config, candidates []netprobe.Candidate) {
	d := cfg.channel()
	if d.Rails {
		return
	}
	first := true
	for i := range candidates {
		if c := &candidates[i]; c.Taken && !first {
			c.Taken, c.Why = false, fmt.Sprintf("MUSTER_CHANNEL is %s, which has one interface", d.Name)
		} else if c.Taken {
			first = false
		}
	}
}

// proves reports whether interfaces are dialed before they are used. Connections are not:
// the probes are datagrams, which a firewall may drop.
func proves(cfg *Config, apart bool) bool { return apart && cfg.channel().Probes }

// Keys under which ranks publish data about their interfaces, besides the network key.
const (
	cardName     = "muster-rails-card"
	reportName   = "muster-rails-report"
	decisionName = "muster-rails-decision-" // followed by the number of the node
	// dialTimeout is how long to dial a host that does not answer at all.
	dialTimeout = 15 * time.Second
)

// railProof is this rank's part in verifying the interfaces.
type railProof struct {
	client     pmi.Client
	candidates []netprobe.Candidate
	prover     *netprobe.Prover // of the first rank of a host
}

// beginProof opens the sockets of a host and publishes them. A Fence must follow.
func beginProof(cfg *Config, client pmi.Client, candidates []netprobe.Candidate) (*railProof, error) {
	p := &railProof{client: client, candidates: candidates}
	if client.LocalRank() != 0 {
		return p, nil
	}
	ports, err := netprobe.ParsePorts(cfg.Ports)
	if err != nil {
		return nil, err
	}
	if p.prover, err = netprobe.NewProver(client.Host(), candidates, ports); err != nil {
		return nil, err
	}
	if err := client.Put(cardName, p.prover.Card()); err != nil {
		p.end()
		return nil, fmt.Errorf("publish the addresses of the interfaces: %w", err)
	}
	return p, nil
}

// end closes the sockets.
func (p *railProof) end() {
	if p.prover != nil {
		_ = p.prover.Close() // no more data comes over them
	}
}

// provenRails marks the interfaces that are rails. several reports whether some host has
// more than one.
func (p *railProof) provenRails(ctx context.Context, key []byte) (several, surprising bool, err error) {
	defer p.end()
	var leaders []int
	if p.prover != nil {
		leaders = leadersOf(p.client)
		if err := p.dial(ctx, key, leaders); err != nil {
			return false, false, err
		}
	}
	if err := p.client.Fence(pmi.InStage(ctx, "reports about interfaces")); err != nil {
		return false, false, fmt.Errorf("wait for the reports of other hosts about their interfaces: %w", err)
	}
	if p.client.Rank() == 0 {
		if err := p.decide(ctx, leaders); err != nil {
			return false, false, err
		}
	}
	if err := p.client.Fence(pmi.InStage(ctx, "choice of interfaces")); err != nil {
		return false, false, fmt.Errorf("wait for the choice of interfaces: %w", err)
	}
	return p.apply(ctx)
}

// apply marks the interfaces that rank 0 has selected.
func (p *railProof) apply(ctx context.Context) (several, surprising bool, err error) {
	text, err := p.client.Get(ctx, 0, fmt.Sprint(decisionName, p.client.Node(p.client.Rank())))
	if err != nil {
		return false, false, fmt.Errorf("fetch the choice of interfaces from rank 0: %w", err)
	}
	var d netprobe.Decision
	if err := json.Unmarshal(text, &d); err != nil {
		return false, false, fmt.Errorf("read the choice of interfaces: %w; do all hosts run the same version?", err)
	}
	surprising = d.Apply(p.candidates)
	return d.Several, surprising, nil
}

// leadersOf returns the first rank of each host, in order.
func leadersOf(client pmi.Client) (list []int) {
	seen := map[int]bool{}
	for r := range client.Size() {
		if n := client.Node(r); !seen[n] {
			seen[n] = true
			list = append(list, r)
		}
	}
	return list
}

// dial verifies the interfaces to the next host and publishes the result.
func (p *railProof) dial(ctx context.Context, key []byte, leaders []int) error {
	p.prover.Answer(key)
	next := leaders[(slices.Index(leaders, p.client.Rank())+1)%len(leaders)]
	card, err := p.client.Get(ctx, next, cardName)
	if err != nil {
		return fmt.Errorf("fetch the addresses of the interfaces of rank %d: %w", next, err)
	}
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	p.client.Board().Stage(p.client.Rank(), fmt.Sprintf("probe of the interfaces of rank %d's host", next))
	proofs, err := p.prover.Prove(dialing, card)
	if err != nil {
		return err
	}
	report, err := p.prover.Report(card, proofs)
	if err != nil {
		return err
	}
	if err := p.client.Put(reportName, report); err != nil {
		return fmt.Errorf("publish which interfaces reach other hosts: %w", err)
	}
	return nil
}

// decide selects the interfaces, at rank 0.
func (p *railProof) decide(ctx context.Context, leaders []int) error {
	var reports [][]byte
	for _, r := range leaders {
		text, err := p.client.Get(ctx, r, reportName)
		if err != nil {
			return fmt.Errorf("fetch the report of rank %d about its interfaces: %w", r, err)
		}
		reports = append(reports, text)
	}
	list, err := netprobe.Decide(reports)
	if err != nil {
		return err
	}
	for i, r := range leaders {
		text, err := json.Marshal(&list[i])
		if err == nil {
			err = p.client.Put(fmt.Sprint(decisionName, p.client.Node(r)), text)
		}
		if err != nil {
			return fmt.Errorf("publish the choice of interfaces for rank %d: %w", r, err)
		}
	}
	return nil
}

// agreement is what the ranks agree on before they open the network.
type agreement struct {
	key        []byte
	candidates []netprobe.Candidate
	several    bool // some host has more than one rail
	surprising bool // the result differs from the choice by name and kind
}

// agreeOnRails returns the network key and the interfaces that carry messages.
func agreeOnRails(cfg *Config, client pmi.Client) (a agreement, err error) {
	apart := onHost(client).LocalSize() < client.Size()
	if a.candidates, err = chooseRails(cfg, apart); err != nil {
		return a, err
	}
	if !proves(cfg, apart) {
		a.key, err = networkKey(cfg, client)
		n := 0
		for i := range a.candidates {
			if a.candidates[i].Taken {
				n++
			}
		}
		a.several = n > 1
		return a, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), cfg.StartTimeout)
	defer cancel()
	if _, again := client.(published); again { // the decision for the first device holds
		if a.key, err = networkKey(cfg, client); err != nil {
			return a, err
		}
		a.several, _, err = (&railProof{client: client, candidates: a.candidates}).apply(ctx)
	} else {
		var proof *railProof
		if proof, err = beginProof(cfg, client, a.candidates); err != nil {
			return a, err
		}
		if a.key, err = networkKey(cfg, client); err != nil {
			proof.end()
			return a, err
		}
		a.several, a.surprising, err = proof.provenRails(ctx, a.key)
	}
	a.several = a.several && cfg.channel().Rails
	oneRail(cfg, a.candidates)
	return a, err
}

// report prints the selected interfaces in one line, at rank 0 and only if they are not
// the obvious ones.
func (a *agreement) report(w io.Writer, rank int) {
	if rank == 0 && (a.several || a.surprising) {
		fmt.Fprintf(w, "muster: network: %s; see muster explain network\n", netprobe.Summary(a.candidates))
	}
}

// paths returns the selected interfaces, or the first of them.
func (a *agreement) paths(several bool) (list []devices.Path, err error) {
	for _, r := range a.candidates {
		if r.Taken && (several || list == nil) {
			list = append(list, devices.Path{Name: r.Name, Bind: netip.AddrPortFrom(r.Address.Addr(), 0), Network: r.Address.Masked()})
		}
	}
	if list == nil { // possible ones are used when they are proved, by datagrams
		return nil, fmt.Errorf("no interface is sure to lead to other hosts: %s; select one by MUSTER_INTERFACE", netprobe.Summary(a.candidates))
	}
	return list, nil
}

// verifiedInterfaces reports which interfaces of this host software iWARP uses. In a job
// on several hosts, the hosts first dial each other over all candidates. All ranks call
// it, instead of Init.
func verifiedInterfaces(ctx context.Context, given *Config) (hook.Interfaces, error) {
	all := *given
	cfg := &all
	settings.SetDefaults(cfg)
	client, err := openClient(ctx, cfg)
	if err != nil {
		return hook.Interfaces{}, err
	}
	defer client.Close()
	if apart := client.LocalSize() < client.Size(); !proves(cfg, apart) {
		var n hook.Interfaces
		candidates, err := chooseRails(cfg, true)
		if candidates != nil {
			n = describeRails(candidates)
		}
		if client.Rank() == 0 {
			n.Host = client.Host()
		}
		return n, err
	}
	a, err := agreeOnRails(cfg, client)
	n := describeRails(a.candidates)
	n.Verified = err == nil
	if client.LocalRank() == 0 {
		n.Host = client.Host()
	}
	return n, err
}

func describeRails(candidates []netprobe.Candidate) hook.Interfaces {
	var b strings.Builder
	_ = netprobe.Table(&b, candidates) // a Builder accepts everything
	return hook.Interfaces{Summary: netprobe.Summary(candidates), Table: b.String()}
}
