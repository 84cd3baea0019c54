package rail

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// The proof that an interface leads to another host. NewProver opens a socket on each
// candidate, Card is what the other host needs to know, and Prove probes every pair of
// an interface here and one there and returns those that have responded. Both hosts
// prove at the same time; each responds to the other's probes until Close.
//
// A hello and its answer are authenticated with the job's key and identify both hosts
// by random numbers. An interface that each host has with the same address, such as
// Docker's bridge, leads to the host itself, which is not the one that was probed.

const (
	helloEvery = 20 * time.Millisecond
	// proofGrace is how long silent interfaces are waited for after one has responded.
	// Only hosts with an interface that leads nowhere wait that long.
	proofGrace = 500 * time.Millisecond
	// maxDialled limits the interfaces that are not ordinary: a host of containers may
	// have hundreds.
	maxDialled = 12

	proofMagic = "MRP1"
	proofLen   = 4 + 1 + 2 + 2*16 + 8 // magic, kind, both interfaces, both hosts, when
	sealedLen  = proofLen + sha256.Size
)

const (
	proofHello  = 1
	proofAnswer = 2
)

type hostID [16]byte

// Card is what a host needs to know about another to probe it.
type Card struct {
	Host       string // its name, for people
	ID         string
	Interfaces []CardEntry
}

// CardEntry is an interface of a Card.
type CardEntry struct {
	Name    string
	Network string
	At      netip.AddrPort
	Kind    Kind
}

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

	mu       sync.Mutex
	key      []byte // nil: not known yet
	peer     hostID // the host being probed
	answered map[[2]int]time.Duration
	start    time.Time
	newProof chan struct{}
}

// NewProver opens a socket on each candidate.
func NewProver(host string, list []Candidate) (*Prover, error) {
	p := &Prover{card: Card{Host: host}, answered: map[[2]int]time.Duration{}, start: time.Now(), newProof: make(chan struct{}, 1)}
	if _, err := rand.Read(p.id[:]); err != nil {
		return nil, fmt.Errorf("rail: no random number for the host ID: %w", err)
	}
	p.card.ID = hex.EncodeToString(p.id[:])
	for i := range list {
		c := &list[i]
		if !c.Possible || c.Kind != Ordinary && len(p.sockets) >= maxDialled {
			continue
		}
		s, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.Address.Addr(), 0)))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("rail: open a socket on %s (%v): %w", c.Name, c.Address.Addr(), err), p.Close())
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

func parseCard(text []byte) (c Card, id hostID, err error) {
	if err = json.Unmarshal(text, &c); err != nil {
		return c, id, fmt.Errorf("rail: the card of a host is not readable: %w", err)
	}
	raw, err := hex.DecodeString(c.ID)
	if err != nil || len(raw) != len(id) {
		return c, id, fmt.Errorf("rail: the card of %s names it %q, which is no number of 16 bytes; do all hosts run the same version?", c.Host, c.ID)
	}
	return c, hostID(raw), nil
}

// Answer lets the prover respond to hellos that are authenticated with the key, until
// Close.
func (p *Prover) Answer(key []byte) {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("muster proof of rails")) // separates this use of the key from others
	p.mu.Lock()
	p.key = mac.Sum(nil)
	p.mu.Unlock()
	for i := range p.sockets {
		p.readers.Add(1)
		go p.read(i)
	}
}

// Prove probes each interface of a host from each here. It returns when all expected
// pairs have responded, or some have and proofGrace has passed, or ctx ends. That
// nothing has responded is no error.
func (p *Prover) Prove(ctx context.Context, text []byte) ([]Proof, error) {
	theirs, id, err := parseCard(text)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.peer = id
	p.mu.Unlock()
	expected := expectedPairs(p.card.Interfaces, theirs.Interfaces)
	tick := time.NewTicker(helloEvery)
	defer tick.Stop()
	var grace <-chan time.Time
	for {
		for i := range p.sockets {
			for j := range theirs.Interfaces {
				p.hello(i, j, id, theirs.Interfaces[j].At)
			}
		}
		select {
		case <-tick.C:
		case <-p.newProof:
		case <-grace:
			return p.proofs(), nil
		case <-ctx.Done():
			return p.proofs(), nil
		}
		have := p.proofs()
		if len(have) > 0 && grace == nil {
			grace = time.After(proofGrace)
		}
		if len(expected) > 0 && includes(have, expected) {
			return have, nil
		}
	}
}

func includes(have []Proof, pairs [][2]int) bool {
	n := 0
	for _, f := range have {
		for _, e := range pairs {
			if e == [2]int{f.Mine, f.Theirs} {
				n++
			}
		}
	}
	return n == len(pairs)
}

func (p *Prover) proofs() (list []Proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.sockets {
		for j := range 256 {
			if trip, ok := p.answered[[2]int{i, j}]; ok {
				list = append(list, Proof{i, j, trip})
			}
		}
	}
	return list
}

// hello probes one interface from another, unless the pair has responded.
func (p *Prover) hello(mine, theirs int, to hostID, at netip.AddrPort) {
	p.mu.Lock()
	_, done := p.answered[[2]int{mine, theirs}]
	b := p.seal(proofHello, mine, theirs, p.id, to, uint64(time.Since(p.start)))
	p.mu.Unlock()
	if !done {
		// Without a route nothing will respond.
		_, _ = p.sockets[mine].WriteToUDPAddrPort(b, at)
	}
}

// seal makes an authenticated datagram. The lock is held.
func (p *Prover) seal(kind byte, mine, theirs int, from, to hostID, when uint64) []byte {
	b := append(make([]byte, 0, sealedLen), proofMagic...)
	b = append(b, kind, byte(mine), byte(theirs))
	b = append(append(b, from[:]...), to[:]...)
	b = binary.LittleEndian.AppendUint64(b, when)
	mac := hmac.New(sha256.New, p.key)
	mac.Write(b)
	return mac.Sum(b)
}

// read processes the datagrams of one socket.
func (p *Prover) read(socket int) {
	defer p.readers.Done()
	b := make([]byte, sealedLen+1)
	for {
		n, from, err := p.sockets[socket].ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && n == sealedLen {
			p.take(socket, b[:n], from)
		}
	}
}

// take processes a datagram. It drops one that is not authenticated with the key, or is
// meant for another host.
func (p *Prover) take(socket int, b []byte, from netip.AddrPort) {
	p.mu.Lock()
	mac := hmac.New(sha256.New, p.key)
	mac.Write(b[:proofLen])
	if !hmac.Equal(mac.Sum(nil), b[proofLen:]) || !bytes.HasPrefix(b, []byte(proofMagic)) {
		p.mu.Unlock()
		return
	}
	kind, there, here := b[4], int(b[5]), int(b[6])
	who, whom, when := hostID(b[7:23]), hostID(b[23:39]), binary.LittleEndian.Uint64(b[39:])
	var answer []byte
	switch {
	case whom != p.id || here != socket:
	case kind == proofHello:
		answer = p.seal(proofAnswer, socket, there, p.id, who, when)
	case kind == proofAnswer && who == p.peer:
		pair := [2]int{socket, there}
		if _, old := p.answered[pair]; !old {
			p.answered[pair] = time.Since(p.start) - time.Duration(when)
		}
		select {
		case p.newProof <- struct{}{}:
		default:
		}
	}
	p.mu.Unlock()
	if answer != nil {
		_, _ = p.sockets[socket].WriteToUDPAddrPort(answer, from) // if it is lost, the peer probes again
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
