package mpi

// Check mode of collectives: before a blocking call, and at the end of a non-blocking
// one, a rank compares its call with that of the rank before it. The first rank that
// notices a difference ends the collectives of the communicator on all ranks
// (coll_broken.go), with a text that names both calls.
//
// The rank before it may make the call at any later time. The start of a non-blocking call
// is local (MPI-4.1 section 6.12), and so are calls that test. So the messages that compare
// the calls are operations of the request, beside the collective: only a call that may wait
// waits for them.

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// describedBytes limits the description of a call.
const describedBytes = 256

// checkedArgs are arguments that the schedule of a collective does not need.
type checkedArgs struct{ elem, op string }

// noteType keeps the element type of a call for the comparison.
func noteType[T any](k *collCall) {
	k.checked = &checkedArgs{elem: typeText(reflect.TypeFor[T]())}
}

// checkError is a difference between two calls.
type checkError struct {
	class Class
	text  string
}

func (e *checkError) Error() string { return e.text }

// callCheck is the comparison of one call.
type callCheck struct {
	c      *Comm
	op     string
	mine   string
	site   string
	theirs [describedBytes]byte
	before int // the rank before this one
	sent   engine.Op
	recv   engine.Op
	whole  bool // the collective was complete at once: recv is the operation of its request
}

// describe returns the call in words. Calls with the same words match.
func (c *Comm) describe(k *collCall, form coll.Form) string {
	call := k.call(c, form)
	s := coll.MakeCall(call.Kind(), form, coll.NoRoot, call.Bytes()).String()
	if k.checked != nil && k.checked.elem != "" {
		s += " of " + k.checked.elem
	}
	if k.checked != nil && k.checked.op != "" {
		s += " with " + k.checked.op
	}
	if r := call.Root(); r >= 0 {
		s += fmt.Sprintf(" with root %d", r)
	}
	return s[:min(len(s), describedBytes-siteBytes-1)]
}

// described reports whether calls on the communicator are compared.
func (c *Comm) described() bool { return c.w.cfg.Check && c.size > 1 && c.inter == nil }

// startCheck sends the description of a call to the next rank. It returns nil if there is
// nothing to compare.
func (c *Comm) startCheck(k *collCall, form coll.Form) *callCheck {
	if !c.described() {
		return nil
	}
	k.noted = true
	d := &callCheck{c: c, op: k.name, mine: c.describe(k, form), site: c.callSite(), before: (c.rank + c.size - 1) % c.size}
	after := (c.rank + 1) % c.size
	c.openHistory()
	d.recv = c.e.Irecv(&c.co, c.world(d.before), int32(d.before), engine.CheckTag, d.theirs[:])
	d.sent = c.e.Isend(&c.co, c.world(after), engine.CheckTag, []byte(d.mine+"\n"+d.site), p2p.Standard)
	return d
}

// describeLeaving tells the next rank of each communicator that this rank makes no more calls.
// The barrier of Finalize, which a job that tolerates failures does not have, compares itself
// with calls on the world.
func (w *World) describeLeaving() {
	s := &w.check
	s.mu.Lock()
	comms := slices.Collect(maps.Values(s.comms))
	s.mu.Unlock()
	for _, c := range comms {
		if c == w.comm && !w.e.Tolerates() || c.freed || !c.described() {
			continue
		}
		after := (c.rank + 1) % c.size
		sent := c.e.Isend(&c.co, c.world(after), engine.CheckTag, []byte(coll.Finalize.CallName()+"\n"+c.callSite()), p2p.Standard)
		_, _, _ = c.e.Test(sent) // nobody may receive it
	}
}

// compare waits for the description of the rank before this one and compares it.
func (d *callCheck) compare() error {
	if d == nil {
		return nil
	}
	_, err := d.c.e.Wait(engine.NoContext, &d.c.co, d.waitName(), d.recv)
	return d.finish(err)
}

// waitName is how reports name a wait for the call.
func (d *callCheck) waitName() string { return fmt.Sprintf("%s (%s)", d.op, d.site) }

// finish compares the description that has been received.
func (d *callCheck) finish(err error) error {
	c := d.c
	if err == nil {
		_, err = c.e.Wait(engine.NoContext, &c.co, d.waitName(), d.sent)
	} else {
		d.release(d.sent)
	}
	if err != nil {
		return c.asideFailure(err, d.op, d.before)
	}
	e := d.difference()
	if e == nil {
		return nil
	}
	c.e.Break(&c.co, e)
	return c.faultError(d.op, e.class, e.text)
}

// difference compares the description that has been received with that of this rank.
func (d *callCheck) difference() *checkError {
	theirs, there, _ := strings.Cut(strings.TrimRight(string(d.theirs[:]), "\x00"), "\n")
	if theirs == d.mine {
		return nil
	}
	e := &checkError{ErrOther, fmt.Sprintf("rank %d is in %s%s, rank %d in %s%s",
		d.before, theirs, atSite(there), d.c.rank, d.mine, atSite(d.site))}
	if countless(theirs) == countless(d.mine) {
		e.class = ErrTruncate
		e.text += ": the counts differ between ranks"
	}
	return e
}

// countless removes the number of bytes from a description.
func countless(s string) string {
	before, rest, ok := strings.Cut(s, " of ")
	if n, after, isCount := strings.Cut(rest, " bytes"); ok && isCount && strings.Trim(n, "0123456789") == "" {
		return before + after
	}
	return s
}

func atSite(site string) string {
	if site == "" {
		return ""
	}
	return " at " + site
}

// checkCall compares a blocking call before it runs.
func (c *Comm) checkCall(k *collCall, form coll.Form) error {
	if !c.w.cfg.Check || k.noted {
		return nil
	}
	return c.startCheck(k, form).compare()
}

// request makes the request of a non-blocking call compare the calls when it is
// completed.
func (d *callCheck) request(r Request) Request {
	if d == nil {
		return r
	}
	if !r.op.Active() {
		r.op, d.whole = d.recv, true
	}
	return d.c.trackRequest(r, &checkedRequest{calls: d, what: d.mine + atSite(d.site)})
}

// pendingOp returns an operation of the request that is not complete, or else op, its first
// one. The description comes first: if the calls differ, the collective may never end by
// itself, or with an error that names one side only. No description comes any more after a
// failure of the job or of the communicator.
func (d *callCheck) pendingOp(op engine.Op) engine.Op {
	e := d.c.e
	switch {
	case e.OpFailed(op) && e.CheckComm(d.c.co.Ctx) != nil:
		return op
	case !e.Done(d.recv):
		return d.recv
	case !e.OpFailed(d.recv):
		if err := d.difference(); err != nil {
			e.Break(&d.c.co, err)
		}
	}
	if !e.Done(d.sent) {
		return d.sent
	}
	return op
}

// complete ends the comparison after the first operation of the request has been completed.
func (d *callCheck) complete(st engine.Status, err error) (engine.Status, error) {
	switch {
	case errors.Is(err, engine.ErrStale): // the request has been completed before
	case d.whole:
		st, err = engine.Status(noStatus), d.finish(err)
	case err == nil:
		err = d.compare()
	default:
		d.release(d.sent)
		if d.release(d.recv) {
			if e := d.difference(); e != nil {
				err = d.c.faultError(d.op, e.class, e.text)
			}
		}
	}
	return st, err
}

// release frees an operation that nobody waits for any more, if it is complete. It is, as a
// rule: what fails a collective ends all receives of its communicator. It reports whether the
// operation succeeded.
func (d *callCheck) release(o engine.Op) bool {
	_, done, err := d.c.e.Test(o)
	return done && err == nil
}
