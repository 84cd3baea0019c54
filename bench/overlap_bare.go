package bench

// The bounds of overlap between hosts: the same transfers over bare TCP connections, without any
// library.
//
//	send  The sender hands the whole message to the kernel at once, which makes all progress, and
//	      the receiver polls.
//	recv  A thread reads while the receiver computes, and the sender hands the message to the
//	      kernel when the receiver asks for it.
//
// What these do not hide is the processor time of the protocol stack and of the copy, which the
// kernel takes from the computation, and which no library over sockets can return. An adapter
// would.

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
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

// runBare is run over the bare connection. The transfer of a sender has ended when the receiver
// has the data, as a synchronous send of MPI.
func (t *transfer) runBare(w *work, iterations int) (float64, error) {
	switch {
	case t.c.Rank() == 1 && t.sends:
		return 0, errors.Join(t.bare.read(t.short[:]), t.bare.write(t.buf))
	case t.c.Rank() == 1:
		return 0, errors.Join(t.bare.read(t.buf), t.bare.write(t.short[:]))
	}
	out := t.buf
	if !t.sends {
		out = t.short[:]
		t.reader.next(t.buf)
	}
	start := time.Now()
	if err := t.bare.write(out); err != nil {
		return 0, err
	}
	if iterations > 0 {
		w.run(iterations)
	}
	var err error
	if t.sends {
		err = t.bare.read(t.short[:])
	} else {
		err = t.reader.wait()
	}
	return micros(time.Since(start)), err
}

// bareReader is a thread that reads messages while its rank computes. It sleeps in the kernel
// between them, as a progress thread does.
type bareReader struct {
	end   *bareEnd
	buf   atomic.Pointer[[]byte] // the next message; set before the peer is asked for it
	asked int64
	read  atomic.Int64 // messages
	ended chan struct{}
	err   error // after ended
}

func startReader(end *bareEnd) *bareReader {
	r := &bareReader{end: end, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		end.becomeReader()
		for r.err == nil {
			if r.err = end.await(); r.err == nil {
				r.err = end.readAsleep(*r.buf.Load())
			}
			r.read.Add(1)
		}
	}()
	return r
}

func (r *bareReader) next(buf []byte) {
	r.buf.Store(&buf)
	r.asked++
}

func (r *bareReader) wait() error {
	for r.read.Load() < r.asked {
	}
	select {
	case <-r.ended:
		return r.err
	default:
		return nil
	}
}

// bounds are the connections for both sides.
type bounds struct {
	send, recv *bareEnd
	reader     *bareReader // at rank 0
}

// openBounds returns nil if there are none.
func openBounds(c *mpi.Comm) (*bounds, error) {
	b := &bounds{}
	var err error
	if b.send, err = openBound(c); err != nil || b.send == nil {
		return nil, err
	}
	if b.recv, err = openBound(c); err != nil || b.recv == nil {
		b.send.close()
		return nil, err
	}
	if c.Rank() == 0 {
		b.reader = startReader(b.recv)
	}
	return b, nil
}

func (b *bounds) close() {
	if b == nil {
		return
	}
	b.send.close()
	b.recv.shutdown() // ends the wait of the reader
	if b.reader != nil {
		<-b.reader.ended
	}
	b.recv.close()
}

// transfer returns the transfer of a side over its bare connection.
func (b *bounds) transfer(c *mpi.Comm, side scenario, size int) *transfer {
	t := newTransfer(c, side, size)
	t.bare, t.reader = b.recv, b.reader
	if side.send {
		t.bare = b.send
	}
	return t
}
