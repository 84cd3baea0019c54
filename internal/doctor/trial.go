package doctor

// Connection trials. Each host opens a TCP and a UDP port on each of its addresses. The
// other hosts send a secret token and receive another one in return. So neither a port
// scanner nor another machine with the same address is mistaken for the host. The UDP port
// also answers packets of the maximum size of the sender's interface, which are sent with
// fragmentation disabled.

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Target is an address of a host with the ports for trials.
type Target struct {
	Host      string `json:"host"` // filled in by the asker
	Interface string `json:"interface"`
	Address   string `json:"address"`
	TCP       int    `json:"tcp"`
	UDP       int    `json:"udp"`
	Token     string `json:"token"`  // to send
	Answer    string `json:"answer"` // to expect
}

const (
	tokenLen = 26 // of rand.Text
	// maxTargets limits the time for a host with hundreds of container addresses.
	maxTargets    = 8
	dialTime      = 2 * time.Second
	datagramTime  = 250 * time.Millisecond // for one; there are datagramTries
	datagramTries = 4
	triesAtOnce   = 32
	headers       = 28 // of IPv4 and UDP
)

// trialPorts are the open ports of this host.
type trialPorts struct {
	targets []Target
	closed  []io.Closer
	busy    sync.WaitGroup
}

// openTrialPorts listens on the addresses that other hosts can use. It skips addresses
// where listening fails.
func openTrialPorts(list []Interface) *trialPorts {
	s := &trialPorts{}
	for _, i := range list {
		if i.Loopback || !i.Carrier {
			continue
		}
		for _, p := range addresses(i) {
			if len(s.targets) < maxTargets {
				s.open(i.Name, p.Addr())
			}
		}
	}
	return s
}

func (s *trialPorts) open(device string, addr netip.Addr) {
	any := netip.AddrPortFrom(addr, 0)
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(any))
	if err != nil {
		return
	}
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(any))
	if err != nil {
		l.Close()
		return
	}
	p := Target{Interface: device, Address: addr.String(), Token: rand.Text()[:tokenLen], Answer: rand.Text()[:tokenLen],
		TCP: l.Addr().(*net.TCPAddr).Port, UDP: u.LocalAddr().(*net.UDPAddr).Port}
	s.targets = append(s.targets, p)
	s.closed = append(s.closed, l, u)
	s.busy.Go(func() { answerTCP(l, p) })
	s.busy.Go(func() { answerUDP(u, p) })
}

func (s *trialPorts) close() {
	for _, c := range s.closed {
		_ = c.Close() // there is no unsent data
	}
	s.busy.Wait()
}

// answerTCP serves a limited number of connections at a time.
func answerTCP(l *net.TCPListener, p Target) {
	room := make(chan struct{}, 4*triesAtOnce)
	var busy sync.WaitGroup
	defer busy.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		room <- struct{}{}
		busy.Go(func() {
			defer func() { c.Close(); <-room }()
			_ = c.SetDeadline(time.Now().Add(dialTime))
			token := make([]byte, tokenLen)
			if _, err := io.ReadFull(c, token); err == nil && subtle.ConstantTimeCompare(token, []byte(p.Token)) == 1 {
				_, _ = io.WriteString(c, p.Answer)
			}
		})
	}
}

// answerUDP answers packets with the right token with their size. It never sends more
// than it received.
func answerUDP(u *net.UDPConn, p Target) {
	packet := make([]byte, 1<<16)
	for {
		n, from, err := u.ReadFromUDPAddrPort(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n < tokenLen+8 || subtle.ConstantTimeCompare(packet[:tokenLen], []byte(p.Token)) != 1 {
			continue
		}
		_, _ = u.WriteToUDPAddrPort(fmt.Appendf(nil, "%s%d", p.Answer, n), from)
	}
}

// tryAll tries all targets, several at a time.
func tryAll(ctx context.Context, from string, targets []Target, own []Interface) []Trial {
	trials := make([]Trial, len(targets))
	room := make(chan struct{}, triesAtOnce)
	var busy sync.WaitGroup
	for i, p := range targets {
		room <- struct{}{}
		busy.Go(func() {
			trials[i] = try(ctx, from, p, own)
			<-room
		})
	}
	busy.Wait()
	return trials
}

func try(ctx context.Context, from string, p Target, own []Interface) Trial {
	t := Trial{From: from, To: p.Host, Address: p.Address, Interface: p.Interface}
	addr, err := netip.ParseAddr(p.Address)
	if err != nil {
		t.TCP = err.Error()
		return t
	}
	if owner(addr, own) != nil {
		t.Own = true
		return t
	}
	if t.TCP = errorText(tryTCP(ctx, p)); t.TCP != "" {
		return t
	}
	tryUDP(p, addr, own, &t)
	return t
}

func owner(addr netip.Addr, own []Interface) *Interface {
	for i := range own {
		if slices.ContainsFunc(addresses(own[i]), func(p netip.Prefix) bool { return p.Addr() == addr }) {
			return &own[i]
		}
	}
	return nil
}

func tryTCP(ctx context.Context, p Target) error {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(p.Address, strconv.Itoa(p.TCP)))
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(dialTime))
	if _, err := io.WriteString(c, p.Token); err != nil {
		return err
	}
	answer := make([]byte, tokenLen)
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != p.Answer {
		return errors.New("another program answers there")
	}
	return nil
}

// tryUDP sends a small packet and, if that arrives, one of full size.
func tryUDP(p Target, addr netip.Addr, own []Interface, t *Trial) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, uint16(p.UDP))))
	if err != nil {
		t.Datagram = errorText(err)
		return
	}
	defer c.Close()
	if t.Datagram = errorText(exchange(c, p, tokenLen+8)); t.Datagram != "" || !addr.Is4() {
		return
	}
	local, ok := netip.AddrFromSlice(c.LocalAddr().(*net.UDPAddr).IP)
	device := owner(local.Unmap(), own)
	if !ok || device == nil || forbidFragmentation(c) != nil {
		return
	}
	t.FullSize = min(device.MTU, 1<<16-1)
	t.Full = errorText(exchange(c, p, t.FullSize-headers))
}

// exchange sends a packet of n bytes and retries if there is no answer.
func exchange(c *net.UDPConn, p Target, n int) error {
	packet := append([]byte(p.Token), bytes.Repeat([]byte{'.'}, n-tokenLen)...)
	want := fmt.Appendf(nil, "%s%d", p.Answer, n)
	got := make([]byte, len(want)+1)
	var sendErr error
	for range datagramTries {
		if _, sendErr = c.Write(packet); sendErr != nil {
			time.Sleep(datagramTime / 10) // the queue may be full
			continue
		}
		_ = c.SetReadDeadline(time.Now().Add(datagramTime))
		if k, err := c.Read(got); err == nil && bytes.Equal(got[:k], want) {
			return nil
		}
	}
	if sendErr != nil {
		return sendErr
	}
	return errors.New("lost on the way")
}

// errorText omits the operation and the addresses, which the trial already contains.
func errorText(err error) string {
	var op *net.OpError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &op) && op.Timeout():
		return "timeout"
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}
