package doctor

// Reaching each other. A host that is asked opens a TCP and a UDP port on each of
// its addresses, for this one time; the others come with a token that only those
// who were told can know, and get another one back. So a port scanner is not
// taken for a host, nor some other machine with the same address for the right
// one. The UDP port also answers packets as large as the sender's interface
// allows, which are sent with the order not to cut them.

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

// Target is where a host can be tried: an address of it.
type Target struct {
	Host      string `json:"host"` // filled in by the asker
	Interface string `json:"interface"`
	Address   string `json:"address"`
	TCP       int    `json:"tcp"`
	UDP       int    `json:"udp"`
	Token     string `json:"token"`  // to say
	Answer    string `json:"answer"` // to be expected
}

const (
	tokenLen = 26 // of rand.Text
	// maxPlaces keeps a host with hundreds of container addresses from taking
	// all the time.
	maxPlaces     = 8
	dialTime      = 2 * time.Second
	datagramTime  = 250 * time.Millisecond // for one; there are datagramTries
	datagramTries = 4
	triesAtOnce   = 32
	headers       = 28 // of IPv4 and UDP
)

// stand is the open ports of this host.
type stand struct {
	places []Target
	closed []io.Closer
	busy   sync.WaitGroup
}

// openStand listens on the addresses of interfaces that others could use. What
// cannot be opened is left out: nobody can reach it either.
func openStand(list []Interface) *stand {
	s := &stand{}
	for _, i := range list {
		if i.Loopback || !i.Carrier {
			continue
		}
		for _, p := range addresses(i) {
			if len(s.places) < maxPlaces {
				s.open(i.Name, p.Addr())
			}
		}
	}
	return s
}

func (s *stand) open(device string, addr netip.Addr) {
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
	s.places = append(s.places, p)
	s.closed = append(s.closed, l, u)
	s.busy.Go(func() { answerTCP(l, p) })
	s.busy.Go(func() { answerUDP(u, p) })
}

func (s *stand) close() {
	for _, c := range s.closed {
		_ = c.Close() // nothing was left unsent
	}
	s.busy.Wait()
}

// answerTCP serves connections, few at a time: strangers cannot hold more.
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

// answerUDP reports who knows the token how much of the packet has arrived. It
// never sends more than it got.
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

// tryAll tries all places, several at once.
func tryAll(ctx context.Context, from string, places []Target, own []Interface) []Trial {
	trials := make([]Trial, len(places))
	room := make(chan struct{}, triesAtOnce)
	var busy sync.WaitGroup
	for i, p := range places {
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
	if !ok || device == nil || forbidCutting(c) != nil {
		return
	}
	t.FullSize = min(device.MTU, 1<<16-1)
	t.Full = errorText(exchange(c, p, t.FullSize-headers))
}

// exchange sends a packet of n bytes, again if nothing comes back.
func exchange(c *net.UDPConn, p Target, n int) error {
	packet := append([]byte(p.Token), bytes.Repeat([]byte{'.'}, n-tokenLen)...)
	want := fmt.Appendf(nil, "%s%d", p.Answer, n)
	got := make([]byte, len(want)+1)
	var sendErr error
	for range datagramTries {
		if _, sendErr = c.Write(packet); sendErr != nil {
			time.Sleep(datagramTime / 10) // a full queue, perhaps
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

// errorText leaves out what the trial says anyway: operation and addresses.
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
