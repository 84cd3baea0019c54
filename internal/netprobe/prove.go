package netprobe

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// The proof that an interface leads to another host. NewProver opens a socket on each
// candidate, Card is what the other host needs to know, and Prove probes every pair of an
// interface here and one there and returns those that have responded. Both hosts prove at
// the same time; each responds to the other's probes until Close.

const (
	helloEvery = 20 * time.Millisecond
	// proofGrace is how long silent interfaces are waited for after one has responded.
	// Only hosts with an interface that leads nowhere wait that long.
	proofGrace = 500 * time.Millisecond
	// maxDialled limits the interfaces that are not ordinary: a host of containers may
	// have hundreds.
	maxDialled = 12
)

// pair is an interface here and one there, as indices in the Cards.
type pair struct{ mine, theirs int }

// Proof records that a pair of interfaces reach each other.
type Proof struct {
	Mine, Theirs int // indices in the Cards
	Trip         time.Duration
}

// Prover probes other hosts and responds to their probes.
type Prover struct {
	card    Card
	id      hostID
	sockets []*net.UDPConn
	readers sync.WaitGroup
	key     []byte
	start   time.Time
	known   string // what Report adds if nothing has responded
	ready   bool

	mu       sync.Mutex
	peer     hostID // the host being probed
	answered []Proof
	newProof chan struct{}
}

// NewProver opens a socket on each candidate, on a port of the range.
func NewProver(host string, list []Candidate, ports Ports) (*Prover, error) {
	p := &Prover{card: Card{Host: host}, start: time.Now(), newProof: make(chan struct{}, 1)}
	if _, err := rand.Read(p.id[:]); err != nil {
		return nil, fmt.Errorf("netprobe: no random number for the host ID: %w", err)
	}
	p.card.ID = hex.EncodeToString(p.id[:])
	for i := range list {
		c := &list[i]
		if !c.Possible || c.Kind != Ordinary && len(p.sockets) >= maxDialled {
			continue
		}
		var s *net.UDPConn
		err := ports.Try(0, func(port uint16) (err error) {
			s, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.Address.Addr(), port)))
			return err
		})
		if err != nil && c.Kind == NoCarrier {
			continue // an IPv6 address is not usable yet
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("netprobe: open a socket on %s (%v): %w", c.Name, c.Address.Addr(), err), p.Close())
		}
		p.sockets = append(p.sockets, s)
		at := s.LocalAddr().(*net.UDPAddr).AddrPort()
		p.card.Interfaces = append(p.card.Interfaces, CardEntry{c.Name, c.Network(), at, c.Kind})
	}
	return p, nil
}

// Card returns what another host needs to probe this one.
func (p *Prover) Card() []byte {
	text, _ := json.Marshal(&p.card) // strings and numbers alone: it cannot fail
	return text
}

// Answer lets the prover respond to hellos that are authenticated with the key, until
// Close. It comes before Prove.
func (p *Prover) Answer(key []byte) {
	p.key = proofKey(key)
	for i := range p.sockets {
		p.readers.Go(func() { p.read(i) })
	}
}

// Prove probes each interface of a host from each here. It returns when all expected
// pairs have responded, or some have and proofGrace has passed, or ctx ends. That
// nothing has responded is no error. Interfaces without a carrier are probed, and not
// expected: the kernel reports the carrier up to a second late, and then they respond.
func (p *Prover) Prove(ctx context.Context, text []byte) ([]Proof, error) {
	theirs, id, err := parseCard(text)
	if err != nil {
		return nil, err
	}
	if len(p.sockets) == 0 || len(theirs.Interfaces) == 0 {
		p.lookAgain()
		return nil, nil
	}
	p.mu.Lock()
	p.peer = id
	p.mu.Unlock()
	expected := expectedPairs(p.card.Interfaces, theirs.Interfaces)
	tick := time.NewTicker(helloEvery)
	defer tick.Stop()
	var grace <-chan time.Time
	for {
		have := p.proofs()
		silent := func(w pair) bool { return !proved(have, w) }
		if len(expected) > 0 && !slices.ContainsFunc(expected, silent) {
			return have, nil
		}
		if len(have) > 0 && grace == nil {
			grace = time.After(proofGrace)
		}
		for i, s := range p.sockets {
			for j := range theirs.Interfaces {
				if silent(pair{i, j}) {
					h := hello{mine: byte(i), theirs: byte(j), from: p.id, to: id, when: uint64(time.Since(p.start))}
					// Without a route nothing will respond.
					_, _ = s.WriteToUDPAddrPort(h.seal(p.key), theirs.Interfaces[j].At)
				}
			}
		}
		select {
		case <-tick.C:
		case <-p.newProof:
		case <-grace:
			return p.proofs(), nil
		case <-ctx.Done():
			if have = p.proofs(); len(have) == 0 {
				p.lookAgain()
			}
			return have, nil
		}
	}
}

// lookAgain lists the interfaces once more, for the report.
func (p *Prover) lookAgain() {
	list, err := Interfaces()
	if err != nil {
		return // the report names those that were probed
	}
	now, _ := Choose(list, nil)
	p.known, p.ready = describe(&p.card, now)
}

func proved(have []Proof, w pair) bool {
	return slices.ContainsFunc(have, func(f Proof) bool { return f.Mine == w.mine && f.Theirs == w.theirs })
}

// proofs returns the pairs that have responded, in the order of the cards.
func (p *Prover) proofs() []Proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(slices.Values(p.answered), func(a, b Proof) int {
		return cmp.Or(cmp.Compare(a.Mine, b.Mine), cmp.Compare(a.Theirs, b.Theirs))
	})
}

// read processes the datagrams of one socket.
func (p *Prover) read(socket int) {
	b := make([]byte, sealedLen+1)
	for {
		n, from, err := p.sockets[socket].ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if h, ok := unseal(b[:n], p.key); ok && h.to == p.id && int(h.theirs) == socket {
			p.take(socket, &h, from)
		}
	}
}

// take answers a hello, and records an answer of the host being probed.
func (p *Prover) take(socket int, h *hello, from netip.AddrPort) {
	if !h.answer {
		back := hello{answer: true, mine: h.theirs, theirs: h.mine, from: p.id, to: h.from, when: h.when}
		_, _ = p.sockets[socket].WriteToUDPAddrPort(back.seal(p.key), from) // if it is lost, the peer probes again
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.from != p.peer || proved(p.answered, pair{socket, int(h.mine)}) {
		return
	}
	p.answered = append(p.answered, Proof{socket, int(h.mine), time.Since(p.start) - time.Duration(h.when)})
	select {
	case p.newProof <- struct{}{}:
	default:
	}
}

// Close closes the sockets and ends the responses.
func (p *Prover) Close() (err error) {
	for _, s := range p.sockets {
		err = errors.Join(err, s.Close())
	}
	p.readers.Wait()
	return err
}
