//go:build ofi && cgo && linux

package ofi

// All calls into C are in this file, in the order of their use by a device: library,
// offers, device, memory, queues, traffic. None calls back, and none keeps a Go pointer:
// memory that libfabric uses after a call is passed as an address, and the caller keeps it
// alive. Go does not move its heap.

/*
#cgo CFLAGS: -O2 -Wall
#cgo LDFLAGS: -ldl
#cgo noescape mo_library_open
#cgo nocallback mo_library_open
#cgo noescape mo_library_free
#cgo nocallback mo_library_free
#cgo noescape mo_library_version
#cgo nocallback mo_library_version
#cgo noescape mo_error
#cgo nocallback mo_error
#cgo noescape mo_handlers_digest
#cgo nocallback mo_handlers_digest
#cgo noescape mo_offers_get
#cgo nocallback mo_offers_get
#cgo noescape mo_offers_count
#cgo nocallback mo_offers_count
#cgo noescape mo_offers_describe
#cgo nocallback mo_offers_describe
#cgo noescape mo_offers_free
#cgo nocallback mo_offers_free
#cgo noescape mo_device_open
#cgo nocallback mo_device_open
#cgo noescape mo_device_close
#cgo nocallback mo_device_close
#cgo noescape mo_device_dropped
#cgo nocallback mo_device_dropped
#cgo noescape mo_resolve
#cgo nocallback mo_resolve
#cgo noescape mo_register
#cgo nocallback mo_register
#cgo noescape mo_deregister
#cgo nocallback mo_deregister
#cgo noescape mo_set_lkey
#cgo nocallback mo_set_lkey
#cgo noescape mo_cq_open
#cgo nocallback mo_cq_open
#cgo noescape mo_cq_done
#cgo nocallback mo_cq_done
#cgo noescape mo_cq_close
#cgo nocallback mo_cq_close
#cgo noescape mo_cq_ready
#cgo nocallback mo_cq_ready
#cgo noescape mo_srq_new
#cgo nocallback mo_srq_new
#cgo noescape mo_srq_free
#cgo nocallback mo_srq_free
#cgo noescape mo_srq_post
#cgo nocallback mo_srq_post
#cgo noescape mo_qp_open
#cgo nocallback mo_qp_open
#cgo noescape mo_qp_name
#cgo nocallback mo_qp_name
#cgo noescape mo_qp_slots
#cgo nocallback mo_qp_slots
#cgo noescape mo_qp_close
#cgo nocallback mo_qp_close
#cgo noescape mo_connect
#cgo nocallback mo_connect
#cgo noescape mo_post
#cgo nocallback mo_post
#cgo noescape mo_poll
#cgo noescape mo_pending
#cgo nocallback mo_pending
#cgo nocallback mo_poll
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/ofi/internal/leap"
)

// library is libfabric.
type library struct{ c *C.mo_library }

// openLibrary loads libfabric. It is never unloaded.
func openLibrary(name string, peers int) (library, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var why [256]C.char
	c := C.mo_library_open(cname, C.uint32_t(max(peers, 0)), &why[0], C.size_t(len(why)))
	if c == nil {
		return library{}, errors.New(C.GoString(&why[0]))
	}
	return library{c}, nil
}

func (l library) free() { C.mo_library_free(l.c) }

// version returns major and minor.
func (l library) version() (major, minor int) {
	v := uint32(C.mo_library_version(l.c))
	return int(v >> 16), int(v & 0xffff)
}

// failure converts the result of a shim function to an error.
func (l library) failure(rc C.int) error {
	switch rc {
	case C.MO_OK:
		return nil
	case C.MO_NO_MEMORY, -C.int(unix.ENOMEM):
		return errNoMemory
	case C.MO_UNSUPPORTED:
		return rdma.ErrUnsupported
	}
	return fmt.Errorf("%s (libfabric error %d)", C.GoString(C.mo_error(l.c, rc)), -rc)
}

// signalHandlers returns a digest of the current signal handlers.
func signalHandlers() []byte {
	out := make([]byte, 64*12)
	n := C.mo_handlers_digest((*C.uint8_t)(&out[0]), C.int(len(out)))
	return out[:n]
}

// offers is a result of fi_getinfo.
type offers struct {
	c    *C.mo_offers
	list []offered
}

// The bits of libfabric's mr_mode.
const (
	mrLocal    = 1 << 2
	mrProvKey  = 1 << 6
	mrEndpoint = 1 << 9
)

// offers calls fi_getinfo.
func (l library) offers(provider string, kind rdma.Transport, delivery bool) (offers, error) {
	cname := C.CString(provider)
	defer C.free(unsafe.Pointer(cname))
	var o offers
	want := C.int(0)
	if delivery {
		want = 1
	}
	if rc := C.mo_offers_get(l.c, cname, C.int(kind), want, &o.c); rc != 0 {
		return offers{}, l.failure(rc)
	}
	for i := range int(C.mo_offers_count(o.c)) {
		var m C.mo_limits
		C.mo_offers_describe(o.c, C.int(i), &m)
		mode := uint64(m.mr_mode)
		o.list = append(o.list, offered{
			provider: C.GoString(&m.provider[0]), fabric: C.GoString(&m.fabric[0]),
			domain: C.GoString(&m.domain[0]), address: C.GoString(&m.address[0]),
			family: int(m.family), transport: rdma.Transport(m.endpoint),
			speed: uint64(m.speed), maxMessage: uint64(m.max_msg),
			localKeys: mode&mrLocal != 0, providerKeys: mode&mrProvKey != 0,
			perEndpoint: mode&mrEndpoint != 0, keySize: int(m.key_size), receives: int(m.rx_size),
			prefix: m.prefix != 0,
		})
	}
	return o, nil
}

func (o offers) free() { C.mo_offers_free(o.c) }

// domain is an opened device.
type domain struct {
	lib   library
	c     *C.mo_device
	stack cStack
}

// setup configures the resources of a device.
type setup struct {
	job      uint64
	index    int
	peers    int
	buffer   int // bytes of a large buffer
	sends    int // large buffers to send from
	delivery bool
	part     int  // longest part of a read or write; 0: the provider's limit
	short    bool // the provider's calls return at once: the scheduler need not be involved
}

func (l library) open(o offers, which int, s setup) (domain, error) {
	cs := C.mo_setup{job: C.uint64_t(s.job), index: C.uint32_t(s.index), peers: C.uint32_t(s.peers),
		buffer: C.uint32_t(s.buffer), sends: C.uint32_t(s.sends), part: C.uint64_t(s.part)}
	if s.delivery {
		cs.delivery = 1
	}
	d := domain{lib: l}
	if rc := C.mo_device_open(l.c, o.c, C.int(which), &cs, &d.c); rc != 0 {
		return d, l.failure(rc)
	}
	if s.short {
		d.stack = newStack()
	}
	return d, nil
}

func (d domain) close() {
	C.mo_device_close(d.c)
	d.stack.free()
}

func (d domain) countDropped() uint64 { return uint64(C.mo_device_dropped(d.c)) }

func (d domain) resolve(peer int, name []byte) error {
	return d.lib.failure(C.mo_resolve(d.c, C.uint32_t(peer), unsafe.Pointer(&name[0]), C.size_t(len(name))))
}

// region is a registration.
type region struct{ c *C.mo_region }

// errKeyTaken reports that another region has the key.
var errKeyTaken = errors.New("the key is taken")

func (d domain) register(mem []byte, acc rdma.Access, key uint64) (r region, rkey, base uint64, err error) {
	var gotKey, gotBase C.uint64_t
	at := C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	rc := C.mo_register(d.c, at, C.size_t(len(mem)), C.int(acc), C.uint64_t(key), &r.c, &gotKey, &gotBase)
	if rc == -C.int(C.MO_ERR_NOKEY) {
		return r, 0, 0, errKeyTaken
	}
	if rc != 0 {
		return r, 0, 0, d.lib.failure(rc)
	}
	return r, uint64(gotKey), uint64(gotBase), nil
}

func (d domain) deregister(r region) error { return d.lib.failure(C.mo_deregister(d.c, r.c)) }

// setLKey assigns a region to a local key, or none if r is empty.
func (d domain) setLKey(lkey uint32, r region) error {
	return d.lib.failure(C.mo_set_lkey(d.c, C.uint32_t(lkey), r.c))
}

// cqueue is a completion queue.
type cqueue struct {
	c    *C.mo_cq
	done *[batch]C.mo_done
	fd   int     // -1: there is none
	top  uintptr // of the stack for short calls; 0: none
}

// batch is the maximum number of entries per call.
const batch = C.MO_BATCH

func (d domain) newCQ(depth int) (cqueue, error) {
	q := cqueue{top: d.stack.top()}
	var fd C.int
	if rc := C.mo_cq_open(d.c, C.int(depth), &q.c, &fd); rc != 0 {
		return q, d.lib.failure(rc)
	}
	q.fd = int(fd)
	q.done = (*[batch]C.mo_done)(unsafe.Pointer(C.mo_cq_done(q.c)))
	return q, nil
}

func (q cqueue) close(l library) error { return l.failure(C.mo_cq_close(q.c)) }

// readiness is the state of a queue before a wait.
type readiness int

const (
	idle  readiness = C.MO_IDLE
	soon  readiness = C.MO_SOON
	ready readiness = C.MO_READY
)

func (q cqueue) ready() readiness { return readiness(C.mo_cq_ready(q.c)) }

// squeue is a receive queue.
type squeue struct{ c *C.mo_srq }

// newSRQ creates a receive queue. tag is returned in the completions of its messages.
func (d domain) newSRQ(lend bool, depth, lowWater, tag int) (squeue, error) {
	l := C.int(0)
	if lend {
		l = 1
	}
	q := squeue{C.mo_srq_new(d.c, l, C.int(depth), C.int(lowWater), C.uint32_t(tag))}
	if q.c == nil {
		return q, errors.New("out of memory")
	}
	return q, nil
}

func (q squeue) free() { C.mo_srq_free(q.c) }

// post posts a buffer and returns its slot, which identifies it until it is used.
func (q squeue) post(wr *rdma.RecvWR) (slot int, err error) {
	var s C.uint32_t
	at := C.uintptr_t(uintptr(wr.Body.Ptr()))
	switch C.mo_srq_post(q.c, C.uint64_t(wr.ID), at, C.size_t(wr.Body.Len()), &s) {
	case C.MO_OK:
		return int(s), nil
	case C.MO_AGAIN:
		return 0, rdma.ErrAgain
	}
	return 0, rdma.ErrUnsupported
}

// endpoint is a queue pair.
type endpoint struct {
	c     *C.mo_qp
	slots *[batch]C.uint32_t
	top   uintptr // as in cqueue
}

func (d domain) newQP(kind rdma.Transport, send, recv cqueue, srq squeue, depth, buffers int) (endpoint, error) {
	e := endpoint{top: d.stack.top()}
	rc := C.mo_qp_open(d.c, C.int(kind), send.c, recv.c, srq.c, C.int(depth), C.int(buffers), &e.c)
	if rc != 0 {
		return e, d.lib.failure(rc)
	}
	e.slots = (*[batch]C.uint32_t)(unsafe.Pointer(C.mo_qp_slots(e.c)))
	return e, nil
}

func (e endpoint) name(l library) ([]byte, error) {
	name := make([]byte, C.MO_NAME_MAX)
	n := C.size_t(len(name))
	if rc := C.mo_qp_name(e.c, unsafe.Pointer(&name[0]), &n); rc != 0 {
		return nil, l.failure(rc)
	}
	return name[:n], nil
}

func (e endpoint) close(l library) error { return l.failure(C.mo_qp_close(e.c)) }

// connect takes a step towards a connection; ErrAgain requests another call.
func (e endpoint) connect(l library, active bool, name []byte, peer int) error {
	a := C.int(0)
	if active {
		a = 1
	}
	rc := C.mo_connect(e.c, a, unsafe.Pointer(&name[0]), C.size_t(len(name)), C.uint32_t(peer))
	if rc == C.MO_AGAIN {
		return rdma.ErrAgain
	}
	return l.failure(rc)
}

// noSlot marks work whose memory need not be kept alive.
const noSlot = C.MO_NO_SLOT

// refusal is the reason why mo_post stopped.
type refusal int32

const (
	refusedNothing     refusal = C.MO_OK
	refusedAgain       refusal = C.MO_AGAIN
	refusedUnsupported refusal = C.MO_UNSUPPORTED
	refusedTooLong     refusal = C.MO_TOO_LONG
	refusedPeer        refusal = C.MO_UNKNOWN_PEER
	refusedKey         refusal = C.MO_BAD_LKEY
)

// errorFor converts an error of libfabric.
func (l library) errorFor(why refusal) error { return l.failure(C.int(why)) }

// post passes up to batch requests, which must be on the heap.
func (e endpoint) post(wrs []rdma.SendWR) (taken int, why refusal) {
	var rc int64
	if e.top != 0 {
		rc = int64(leap.Call(uintptr(unsafe.Pointer(C.mo_post)), uintptr(unsafe.Pointer(e.c)), uintptr(unsafe.Pointer(&wrs[0])), uintptr(len(wrs)), e.top))
	} else {
		rc = int64(C.mo_post(e.c, C.uintptr_t(uintptr(unsafe.Pointer(&wrs[0]))), C.int(len(wrs))))
	}
	return int(uint32(rc)), refusal(rc >> 32)
}

// pending returns the number of incomplete requests.
func (e endpoint) pending() int { return int(C.mo_pending(e.c)) }

// slot returns the slot of the i-th request that was just accepted.
func (e endpoint) slot(i int) uint32 { return uint32(e.slots[i]) }

// poll polls once; completions 0 to n-1 can be read then.
func (q cqueue) poll(most int) (n int) {
	if q.top != 0 {
		return int(int32(leap.Call(uintptr(unsafe.Pointer(C.mo_poll)), uintptr(unsafe.Pointer(q.c)), uintptr(most), 0, q.top)))
	}
	return int(C.mo_poll(q.c, C.int(most)))
}

// tag returns the tag of the receive queue of the i-th completion.
func (q cqueue) tag(i int) int { return int(q.done[i].tag) }

// completion writes the i-th completion, except for Data of a message that was not lent,
// and returns the slot of the memory that is free again.
func (q cqueue) completion(i int, out *rdma.Completion) (slot uint32, lent bool) {
	d := &q.done[i]
	out.ID = uint64(d.id)
	out.Len = uint64(d.len)
	out.Peer = rdma.PeerID(d.peer)
	out.Op = rdma.Op(d.op)
	out.Status = rdma.Status(d.status)
	if d.lent != 0 {
		out.Data = rdma.MemOf(unsafe.Slice((*byte)(d.data), int(d.len)))
		return noSlot, true
	}
	out.Data = rdma.Mem{}
	return uint32(d.slot), false
}
