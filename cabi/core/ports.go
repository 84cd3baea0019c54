package core

// Connections between programs that were started apart (MPI-4.1 sections 11.9 and 11.10.4).

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func portCalls() map[string]handler {
	return map[string]handler{
		"Open_port":      (*Process).openPort,
		"Close_port":     func(p *Process, a *args) error { return p.self.ClosePort(a.text(0)) },
		"Comm_accept":    joinCall((*mpi.Comm).Accept),
		"Comm_connect":   joinCall((*mpi.Comm).Connect),
		"Comm_join":      (*Process).commJoin,
		"Publish_name":   (*Process).publishName,
		"Unpublish_name": (*Process).unpublishName,
		"Lookup_name":    (*Process).lookupName,
	}
}

func (p *Process) openPort(a *args) error {
	a.hints(0)
	if a.err != nil {
		return nil
	}
	name, err := p.self.OpenPort()
	if err != nil {
		return err
	}
	if len(name) >= p.abi.limits.portName {
		_ = p.self.ClosePort(name) // the other error says what happened
		return errorf(errPort, "the name of the port has %d characters: MPI_MAX_PORT_NAME is %d", len(name), p.abi.limits.portName)
	}
	a.setText(1, name, p.abi.limits.portName)
	return nil
}

// joinCall is the handler of a function with the parameters port, info, root, communicator, new
// communicator. The name and the info object count at the root only.
func joinCall(join func(c *mpi.Comm, ctx context.Context, port string, root int) (*mpi.Comm, error)) handler {
	return func(_ *Process, a *args) error {
		root, c := a.int(2), a.intra(3)
		if a.err != nil {
			return nil
		}
		port, ctx, cancel := "", context.Background(), func() {}
		if c.Rank() == root {
			port = a.text(0)
			ctx, cancel = a.hintsOfRoot(1).timeout(ctx)
		}
		defer cancel()
		d, err := join(c.Comm, ctx, port, root)
		if err != nil {
			return err
		}
		a.addComm(4, d, c)
		return nil
	}
}

// hintsOfRoot is hints where the other ranks wait for the root: what is not an info object counts as
// MPI_INFO_NULL.
func (a *args) hintsOfRoot(i int) *info {
	f, _ := a.p.hints(a.handle(i))
	return f
}

// timeout returns a context that ends after the seconds of the key timeout, which MPICH has.
func (f *info) timeout(ctx context.Context) (context.Context, func()) {
	value, _ := f.get("timeout")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	}
	return ctx, func() {}
}

func (p *Process) publishName(a *args) error {
	if a.hints(1); a.err != nil {
		return nil
	}
	return p.self.PublishName(a.text(0), a.text(2))
}

func (p *Process) unpublishName(a *args) error {
	if a.hints(1); a.err != nil {
		return nil
	}
	return p.self.UnpublishName(a.text(0))
}

func (p *Process) lookupName(a *args) error {
	if a.hints(1); a.err != nil {
		return nil
	}
	port, err := p.self.LookupName(a.text(0))
	if err != nil {
		return err
	}
	a.setText(2, port, p.abi.limits.portName)
	return nil
}

// joinText is what begins the line that both ends of MPI_Comm_join send.
const joinText = "muster join "

// commJoin is MPI_Comm_join. Each end opens a port and sends its name over the socket; the one whose
// name is less accepts. The socket is not used for anything else (MPI-4.1 section 11.10.4).
func (p *Process) commJoin(a *args) error {
	fd := a.int(0)
	mine, err := p.self.OpenPort()
	if err != nil {
		return err
	}
	defer p.self.ClosePort(mine)
	if err := writeSocket(fd, []byte(joinText+mine+"\n")); err != nil {
		return errorf(errArg, "write to file descriptor %d: %v", fd, err)
	}
	line, err := readLine(fd, len(joinText)+p.abi.limits.portName)
	if err != nil {
		return errorf(errArg, "read from file descriptor %d: %v", fd, err)
	}
	theirs, ok := strings.CutPrefix(line, joinText)
	if !ok {
		return errorf(errOther, "the other end of file descriptor %d is not Muster: it sent %.40q", fd, line)
	}
	var d *mpi.Comm
	if ctx := context.Background(); mine < theirs {
		d, err = p.self.Accept(ctx, mine, 0)
	} else {
		d, err = p.self.Connect(ctx, theirs, 0)
	}
	if err != nil {
		return err
	}
	a.addComm(1, d, p.self)
	return nil
}

// readLine reads a line of at most that many bytes, and nothing behind it.
func readLine(fd, most int) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < most; line = append(line, b[0]) {
		if err := readSocket(fd, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			break
		}
	}
	return string(line), nil
}
