package pmi

// Joining of running jobs. Processes that are ranks of jobs already form another job with each
// other by the rendezvous of a job without a launcher: rank 0 opens a rendezvous, and whoever has
// the join token, which contains a key made for this rendezvous alone, takes part as in a start.
// What is behind Client then works as in any job: addresses, memory that is shared, deaths.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// EnvParent has the join token of a job that was spawned to meet its parents, after the number
// of the parents and a colon.
const EnvParent = "MUSTER_PARENT"

// JoinToken is what a process needs to come to a rendezvous. Who has it can take part.
type JoinToken struct {
	Key     string
	Network string   // in which the address 127.0.0.1 is that of rank 0
	Addrs   []string // host:port, in the order in which they are tried
}

// String returns a text without spaces that ParseJoinToken reads.
func (v JoinToken) String() string {
	return v.Key + "/" + v.Network + "/" + strings.Join(v.Addrs, ",")
}

// ParseJoinToken reads a join token.
func ParseJoinToken(s string) (v JoinToken, err error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || len(parts[0]) < minKey {
		return v, errors.New("pmi: this is not a token to join a job")
	}
	v = JoinToken{parts[0], parts[1], strings.Split(parts[2], ",")}
	for _, a := range v.Addrs {
		if _, err := netip.ParseAddrPort(a); err != nil {
			return v, fmt.Errorf("pmi: the token to join a job has the address %.60q: %w", a, err)
		}
	}
	return v, nil
}

// addrs returns the addresses to dial from this process.
func (v JoinToken) addrs() []string {
	if v.Network == "" || v.Network != networkDomain() {
		return v.Addrs
	}
	at, err := netip.ParseAddrPort(v.Addrs[0])
	if err != nil {
		return v.Addrs
	}
	return []string{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()}
}

// Rendezvous is where a new job meets: a port of rank 0, which the job closes when it is complete.
type Rendezvous struct {
	JoinToken
	listener net.Listener
}

// OpenRendezvous opens a rendezvous with this process as rank 0.
func OpenRendezvous() (*Rendezvous, error) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil, fmt.Errorf("pmi: open a port for processes that join: %w", err)
	}
	m := &Rendezvous{JoinToken{Key: rand.Text(), Network: networkDomain()}, l}
	m.Addrs = ownAddresses(uint16(l.Addr().(*net.TCPAddr).Port))
	return m, nil
}

// ownAddresses returns the addresses of this host at a port: those that other hosts can dial
// first.
func ownAddresses(port uint16) (list []string) {
	own, _ := net.InterfaceAddrs()
	var last []string
	for _, a := range own {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || p.Addr().IsLinkLocalUnicast() {
			continue
		}
		text := netip.AddrPortFrom(p.Addr().Unmap(), port).String()
		switch {
		case p.Addr().IsLoopback():
		case p.Addr().Is4():
			list = append(list, text)
		default:
			last = append(last, text)
		}
	}
	if list = append(list, last...); len(list) == 0 {
		list = []string{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String()}
	}
	return slices.Compact(list)
}

// Close ends the rendezvous without a job.
func (m *Rendezvous) Close() error { return m.listener.Close() }

// Gather waits until size processes, including this one, have come, and returns rank 0's client
// of their job. In any case the rendezvous is over then.
func (m *Rendezvous) Gather(ctx context.Context, size int, terms Terms) (Client, error) {
	ctx, cancel := limitStart(ctx)
	defer cancel()
	return gatherAt(ctx, staticJob{terms: terms, size: size, root: m.listener.Addr().String(), key: []byte(m.Key), board: boardFor(size, terms)}, m.listener)
}

// boardFor returns the board of a rank in a joined job that survives failures. The launcher of the
// jobs that have joined knows of failures, and the rank writes what it learns from it.
func boardFor(size int, terms Terms) *Board {
	if !terms.Survives() {
		return nil
	}
	return NewOwnBoard(size)
}

// Notified is implemented by clients to which rank 0 sends notices of failures.
type Notified interface {
	// OnNotice registers a function that is called at each notice, and when the connection to
	// rank 0 ends.
	OnNotice(func())
}

// OnNotice implements Notified.
func (c *wireClient) OnNotice(f func()) {
	if c.notice != nil {
		c.notice.each.Store(&f)
	}
}

// limitStart limits a start that the caller has not.
func limitStart(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, startTimeout)
}

// Join comes to a rendezvous as a rank other than 0.
func (v JoinToken) Join(ctx context.Context, rank, size int, terms Terms) (Client, error) {
	ctx, cancel := limitStart(ctx)
	defer cancel()
	p := staticJob{terms: terms, rank: rank, size: size, key: []byte(v.Key)}
	me, began := newHello(p), time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		var why error
		refused, addrs := 0, v.addrs()
		for _, p.root = range addrs {
			conn, lines, stage, err := tryJoin(ctx, p, me)
			if err == nil {
				return joinOrClose(ctx, newRootedConn(conn, lines, p.root), rank, size, boardFor(size, terms), p.key, terms)
			}
			var final *refusedError
			// The port was open before there was a join token: nobody listens any more.
			if errors.As(err, &final) || errors.Is(err, syscall.ECONNREFUSED) {
				refused++
			}
			why = errors.Join(why, fmt.Errorf("%s: %s: %w", p.root, stage, err))
			if final != nil && stage != proveKey { // else another process may have this port at this address
				refused = len(addrs)
				break
			}
		}
		if refused == len(addrs) {
			return nil, fmt.Errorf("pmi: join as rank %d of %d: %w", rank, size, why)
		}
		select {
		case <-time.After(pause):
			continue
		case <-ctx.Done():
		}
		return nil, fmt.Errorf("pmi: rank %d of %d could not join %s: %w", rank, size, describeTimeout(ctx, began), why)
	}
}
