package dgram

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// Addresses. A queue pair is published as host:port/pair/incarnation/name, or with several
// paths as host:port,host:port/pair/incarnation/name. It has pair
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
	return fmt.Sprintf("%v/%x/%012x/%d", a.at.addrPort(), a.pair, uint64(a.incarnation), a.name)
}

// parseAddress returns an address with its first endpoint, and all endpoints.
func parseAddress(text rdma.Addr) (address, []endpoint, error) {
	wrong := func(what string) (address, []endpoint, error) {
		return address{}, nil, fmt.Errorf("dgram: %q is not an address of a queue pair: %s; it should look like 10.0.0.1:4711/1/0123456789ab/0", string(text), what)
	}
	parts := strings.Split(string(text), "/")
	if len(parts) != 4 {
		return wrong("it does not have four parts")
	}
	var ends []endpoint
	for one := range strings.SplitSeq(parts[0], ",") {
		at, err := netip.ParseAddrPort(one)
		if err != nil || at.Port() == 0 {
			return wrong("it does not begin with host and port")
		}
		ends = append(ends, endpoint{at, rawOf(at)})
	}
	if len(ends) > reliable.MaxPaths {
		return wrong("it has too many endpoints")
	}
	pair, err := strconv.ParseUint(parts[1], 16, 16)
	if err != nil || pair == 0 {
		return wrong("its second part is no queue pair")
	}
	l, err := strconv.ParseUint(parts[2], 16, 48)
	if err != nil || l == 0 {
		return wrong("its third part is no incarnation")
	}
	name, err := strconv.ParseUint(parts[3], 10, 32)
	if err != nil {
		return wrong("its fourth part is no name")
	}
	return address{at: ends[0].raw, incarnation: incarnation(l), pair: uint16(pair), name: uint32(name)}, ends, nil
}
