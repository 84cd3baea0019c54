package bench

// The bound of overlap between hosts: the same send over a bare TCP connection, without any
// library. The sender hands the whole message to the kernel at once, which makes all progress, and
// the receiver polls. What such a send does not hide is the processor time of the protocol stack,
// which interrupts take from the computation, and which no library over sockets can return. An
// adapter would.
//
// The receive side has no such bound: while nobody reads, the kernel acks late, and the sender's
// congestion window stops it, so a library with a thread that reads hides more.

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// openBound connects the two ranks. It returns nil if they share a host, where no socket is a
// bound, or if no address of rank 1 answers.
func openBound(c *mpi.Comm) (*bareEnd, error) {
	host, err := c.SplitType(mpi.ByNode, 0)
	if err != nil {
		return nil, err
	}
	together := host.Size() == c.Size()
	if err := host.Free(); err != nil || together || c.Size() != 2 {
		return nil, err
	}
	if c.Rank() == 1 {
		return acceptBound(c)
	}
	return dialBound(c)
}

// acceptBound is rank 1: it lists its addresses, and accepts the connection that rank 0 names.
func acceptBound(c *mpi.Comm) (*bareEnd, error) {
	var at []string
	config := net.ListenConfig{Control: enlargeBuffers}
	config.SetMultipathTCP(false)
	l, err := config.Listen(context.Background(), "tcp", ":0")
	if err == nil {
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		own, _ := net.InterfaceAddrs()
		for _, a := range own {
			if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.IsGlobalUnicast() {
				at = append(at, net.JoinHostPort(ip.String(), port))
			}
		}
	}
	if _, err := mpi.BcastValue(c, at, 1); err != nil {
		return nil, err
	}
	reached, err := mpi.BcastValue(c, false, 0)
	if err != nil || !reached {
		return nil, err
	}
	conn, err := l.Accept()
	if err != nil {
		return nil, err
	}
	return newBareEnd(conn)
}

func dialBound(c *mpi.Comm) (*bareEnd, error) {
	at, err := mpi.BcastValue(c, []string(nil), 1)
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	dialer := net.Dialer{Timeout: time.Second, Control: enlargeBuffers}
	for _, a := range at {
		if conn, err = dialer.Dial("tcp", a); err == nil {
			break
		}
	}
	if _, err := mpi.BcastValue(c, conn != nil, 0); err != nil || conn == nil {
		return nil, err
	}
	return newBareEnd(conn)
}

// runBare is run over the bare connection: rank 0 sends. The transfer has ended when the receiver
// has the data, as a synchronous send of MPI.
func (t *transfer) runBare(w *work, iterations int) (float64, error) {
	start := time.Now()
	if !t.sends {
		return 0, errors.Join(t.bare.read(t.buf), t.bare.write(t.short[:]))
	}
	if err := t.bare.write(t.buf); err != nil {
		return 0, err
	}
	if iterations > 0 {
		w.run(iterations)
	}
	err := t.bare.read(t.short[:])
	return micros(time.Since(start)), err
}
