package mpi

// Ports: jobs that were started apart join (MPI-4.1 section 11.9).

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/muster-mpi/muster/internal/pmi"
)

// ports are the open ports of a process, by name.
type ports struct {
	mu   sync.Mutex
	open map[string]*pmi.Port
}

// OpenPort opens a port of this process, at which ranks of c, or of another communicator of the
// process, [Comm.Accept] other jobs. Who has the name can connect: it contains a key. The port is
// open until [Comm.ClosePort] or Finalize.
func (c *Comm) OpenPort() (name string, err error) {
	p, err := pmi.OpenPort()
	if err != nil {
		return "", c.refuse(ErrPort, "OpenPort", "%w", err)
	}
	o := &c.w.base().joins.ports
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[string]*pmi.Port{}
	}
	o.open[p.String()] = p
	return p.String(), nil
}

// ClosePort closes a port of this process.
func (c *Comm) ClosePort(name string) error {
	o := &c.w.base().joins.ports
	o.mu.Lock()
	p := o.open[name]
	delete(o.open, name)
	o.mu.Unlock()
	if p == nil {
		return c.refuse(ErrPort, "ClosePort", "this process has no open port of this name")
	}
	p.Close()
	return nil
}

// closeAll closes the ports that the program has left open.
func (o *ports) closeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.open {
		p.Close()
	}
	clear(o.open)
}

// Accept waits for a group that calls [Comm.Connect] with the name of a port, and returns the
// inter-communicator of both groups. All ranks of c call it. The port is one of rank root, and
// only its name counts. The ranks of the other group come from another job, or from this one.
func (c *Comm) Accept(ctx context.Context, port string, root int) (*Comm, error) {
	h := c.beginCreate("Accept", CallCreate)
	d, err := c.accept(ctx, port, root)
	return d, h.finish(err)
}

func (c *Comm) accept(ctx context.Context, port string, root int) (*Comm, error) {
	const op = "Accept"
	if err := c.checkJoin(op, root); err != nil {
		return nil, err
	}
	return c.hostJoin(ctx, op, ErrPort, root, func(token string) (job, size int, err error) {
		size, err = c.acceptAt(ctx, port, token)
		return 0, size, err
	})
}

func (c *Comm) acceptAt(ctx context.Context, port, token string) (size int, err error) {
	o := &c.w.base().joins.ports
	o.mu.Lock()
	p := o.open[port]
	o.mu.Unlock()
	if p == nil {
		return 0, errors.New("this process has no open port of this name; use that which OpenPort has returned here")
	}
	v, err := pmi.ParseJoinToken(token)
	if err != nil {
		return 0, err
	}
	return p.Accept(ctx, c.size, v)
}

// Connect connects to the group that calls [Comm.Accept] at a port, and returns the
// inter-communicator of both groups. All ranks of c call it; only the name that rank root passes
// counts. It waits for Accept. If nobody listens at the port, because it has been closed or its
// process has ended, and if the key of the name is wrong, the error has class ErrPort.
func (c *Comm) Connect(ctx context.Context, port string, root int) (*Comm, error) {
	h := c.beginCreate("Connect", CallCreate)
	d, err := c.connectTo(ctx, port, root)
	return d, h.finish(err)
}

func (c *Comm) connectTo(ctx context.Context, port string, root int) (*Comm, error) {
	const op = "Connect"
	if err := c.checkJoin(op, root); err != nil {
		return nil, err
	}
	var answer string
	var err error
	if c.rank == root {
		var v pmi.JoinToken
		if v, err = pmi.ParseJoinToken(port); err != nil {
			err = errors.New("this is not the name of a port")
		} else {
			var size int
			var meet pmi.JoinToken
			size, meet, err = v.Call(ctx, c.size)
			answer = fmt.Sprintf("%d:%s", size, meet)
		}
	}
	if answer, err = c.shareText(ErrPort, op, answer, err, root); err != nil {
		return nil, err
	}
	number, text, _ := strings.Cut(answer, ":")
	size, err := strconv.Atoi(number)
	if err != nil || size < 1 {
		return nil, c.refuse(ErrIntern, op, "the port has answered %.20q", answer)
	}
	return c.meet(ctx, op, ErrPort, &joinPlan{sizes: [2]int{size, c.size}, second: true}, nil, text, nil)
}

// PublishName publishes the name of a port under the name of a service, with the launcher, for all
// jobs that it runs together. The name of a service can be published once at a time.
func (c *Comm) PublishName(service, port string) error {
	_, err := c.w.requestLauncher(context.Background(), pmi.JobRequest{Name: &pmi.NameRequest{Publish: true, Service: service, Port: port}})
	return c.nameFailure(ErrService, "PublishName", err)
}

// UnpublishName withdraws the name of a service.
func (c *Comm) UnpublishName(service string) error {
	_, err := c.w.requestLauncher(context.Background(), pmi.JobRequest{Name: &pmi.NameRequest{Withdraw: true, Service: service}})
	return c.nameFailure(ErrService, "UnpublishName", err)
}

// LookupName returns the name of the port that is published under the name of a service.
func (c *Comm) LookupName(service string) (port string, err error) {
	a, err := c.w.requestLauncher(context.Background(), pmi.JobRequest{Name: &pmi.NameRequest{Service: service}})
	return a.Port, c.nameFailure(ErrName, "LookupName", err)
}

func (c *Comm) nameFailure(class Class, op string, err error) error {
	if err == nil {
		return nil
	}
	return c.refuse(class, op, "%w", err)
}
