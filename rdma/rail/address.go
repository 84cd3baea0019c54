package rail

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/rdma"
)

// Addresses. A queue pair is published as rail;incarnation;name;network=address;…, with
// one entry for each rail. The incarnation is a random number in hexadecimal, which
// identifies a queue pair on every rail. match decides which rail of ours communicates
// with which rail of the peer.

type railAddress struct {
	network string
	at      rdma.Addr
}

type address struct {
	incarnation uint64
	name        uint32
	rails       []railAddress
}

// The addresses of the rails may contain the separators.
var (
	escape   = strings.NewReplacer("%", "%25", ";", "%3B", "=", "%3D")
	unescape = strings.NewReplacer("%3D", "=", "%3B", ";", "%25", "%")
)

func (a *address) text() rdma.Addr {
	var b strings.Builder
	fmt.Fprintf(&b, "rail;%016x;%d", a.incarnation, a.name)
	for _, r := range a.rails {
		fmt.Fprintf(&b, ";%s=%s", escape.Replace(r.network), escape.Replace(string(r.at)))
	}
	return rdma.Addr(b.String())
}

func parseAddress(text rdma.Addr) (a address, err error) {
	wrong := func(what string) (address, error) {
		return address{}, fmt.Errorf("rail: %q is not an address of a queue pair: %s; it should look like rail;0123456789abcdef;7;10.0.0.0/24=…", string(text), what)
	}
	parts := strings.Split(string(text), ";")
	if len(parts) < 4 || parts[0] != "rail" {
		return wrong("it does not begin with rail and have four parts")
	}
	if a.incarnation, err = strconv.ParseUint(parts[1], 16, 64); err != nil {
		return wrong("its second part is no incarnation number")
	}
	name, err := strconv.ParseUint(parts[2], 10, 32)
	if err != nil {
		return wrong("its third part is no number")
	}
	a.name = uint32(name)
	for _, entry := range parts[3:] {
		network, at, ok := strings.Cut(entry, "=")
		if !ok || at == "" {
			return wrong(strconv.Quote(entry) + " is no rail")
		}
		a.rails = append(a.rails, railAddress{unescape.Replace(network), rdma.Addr(unescape.Replace(at))})
	}
	return a, nil
}

// match returns, for each rail of ours, the rail of the peer to use. Rails on the same
// network are paired first, then the remaining ones in order. If the peer has fewer
// rails, several of ours share one of its rails. The hello messages show whether they
// reach it.
func match(ours []Rail, theirs []railAddress) []int {
	pairs := make([]int, len(ours))
	taken := make([]bool, len(theirs))
	free := func(fits func(j int) bool) int {
		for j := range theirs {
			if !taken[j] && fits(j) {
				taken[j] = true
				return j
			}
		}
		return -1
	}
	for i := range ours {
		pairs[i] = free(func(j int) bool { return ours[i].Network != "" && ours[i].Network == theirs[j].network })
	}
	for i := range ours {
		if pairs[i] < 0 {
			pairs[i] = free(func(int) bool { return true })
		}
		if pairs[i] < 0 {
			pairs[i] = i % len(theirs)
		}
	}
	return pairs
}
