package soft

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// Addresses. A queue pair is published as host:port/pair/incarnation/name, or with several
// paths as host:port,host:port/pair/incarnation/name. Over another device its address takes
// the place of host and port. It has pair
// and incarnation in hexadecimal and the name in decimal, like ranks. The incarnation
// is part of it, so that a message for one process never reaches a later one on the
// same port.

// endpoint is a UDP address in both forms: for printing and for the kernel.
type endpoint struct {
	addrPort netip.AddrPort
	raw      rawAddress
}

// address identifies a queue pair of a peer.
type address struct {
	at          rawAddress
	incarnation incarnation
	name        uint32
	pair        uint16
	resolved    bool // false: it has only sent to us
}

func (a *address) String() string {
	return fmt.Sprintf("%v/%s", a.at.addrPort(), a.identity())
}

// identity returns the address without its endpoints.
func (a *address) identity() string {
	return fmt.Sprintf("%x/%012x/%d", a.pair, uint64(a.incarnation), a.name)
}

func notAddress(text rdma.Addr, what string) error {
	return fmt.Errorf("soft: %q is not an address of a queue pair: %s; it should look like 10.0.0.1:4711/1/0123456789ab/0", string(text), what)
}

// parseIdentity returns an address without endpoints, and the front of the text, which
// names them.
func parseIdentity(text rdma.Addr) (a address, front rdma.Addr, err error) {
	parts := strings.Split(string(text), "/")
	n := len(parts) - 3
	if n < 1 {
		return a, "", notAddress(text, "it does not have four parts")
	}
	pair, err := strconv.ParseUint(parts[n], 16, 16)
	if err != nil || pair == 0 {
		return a, "", notAddress(text, "its second part is no queue pair")
	}
	l, err := strconv.ParseUint(parts[n+1], 16, 48)
	if err != nil || l == 0 {
		return a, "", notAddress(text, "its third part is no incarnation")
	}
	name, err := strconv.ParseUint(parts[n+2], 10, 32)
	if err != nil {
		return a, "", notAddress(text, "its fourth part is no name")
	}
	a = address{incarnation: incarnation(l), pair: uint16(pair), name: uint32(name)}
	return a, rdma.Addr(strings.Join(parts[:n], "/")), nil
}

// parseAddress returns an address with its first endpoint, and all endpoints.
func parseAddress(text rdma.Addr) (a address, ends []endpoint, err error) {
	a, front, err := parseIdentity(text)
	if err != nil {
		return a, nil, err
	}
	for one := range strings.SplitSeq(string(front), ",") {
		at, err := netip.ParseAddrPort(one)
		if err != nil || at.Port() == 0 {
			return a, nil, notAddress(text, "it does not begin with host and port")
		}
		ends = append(ends, endpoint{at, rawOf(at)})
	}
	if len(ends) > reliable.MaxPaths {
		return a, nil, notAddress(text, "it has too many endpoints")
	}
	a.at = ends[0].raw
	return a, ends, nil
}

// peerTable has the addresses of all processes and queue pairs that were resolved, or have
// sent something.
type peerTable struct {
	list  []address              // by PeerID
	known map[uint64]rdma.PeerID // by incarnation and queue pair

	// Consecutive datagrams often have the same sender.
	latest   uint64 // incarnation and queue pair of the last look-up
	latestID rdma.PeerID
}

// find returns the handle of a known peer.
func (t *peerTable) find(l incarnation, pair uint16) (id rdma.PeerID, ok bool) {
	key := uint64(l)<<16 | uint64(pair)
	if key != t.latest || len(t.list) == 0 {
		if id, ok = t.known[key]; !ok {
			return 0, false
		}
		t.latest, t.latestID = key, id
	}
	return t.latestID, true
}

// id returns the handle of a peer and creates one if needed.
func (t *peerTable) id(l incarnation, pair uint16, name uint32, from *rawAddress) rdma.PeerID {
	if id, ok := t.find(l, pair); ok {
		return id
	}
	id := rdma.PeerID(len(t.list))
	t.known[uint64(l)<<16|uint64(pair)] = id
	t.list = append(t.list, address{incarnation: l, pair: pair, name: name, at: *from})
	return id
}
