package shm

import (
	"runtime"
	"slices"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The cooperative copy. The puller writes its destination into the slot of the region and
// opens it (a writer its source, see assisted.go). From then on both sides claim pieces
// (pieces.go) whenever they poll, the puller reading and the owner writing. done counts
// the bytes that have arrived, and the copy is over for each side when it sees that all
// have.
//
// Each word carries the epoch of the slot, which grows when the owner prepares it for the
// next copy. The owner does that as soon as it has seen the end; a puller that checks
// later finds another epoch and knows that the copy is over. A copy that the owner aborts
// keeps its epoch until the puller has seen it (pullAborted), so the two cases cannot be
// confused.

// Values of pullState.state, in the bits below the epoch.
const (
	pullIdle    = 0
	pullOpening = 1 // a puller is writing its request
	pullOpen    = 2
	pullAborted = 3 // the owner has deregistered the region

	epochShift = 48
	epochValue = 1<<epochShift - 1 // mask of the bits below the epoch

	// postedPull is how much of an OpPull is copied within PostSend: the most that an
	// OpRead copies there.
	postedPull = 256 << 10

	// helpFrom is the shortest copy for which a sleeping owner is woken to help.
	helpFrom = 256 << 10

	// In pullState.gave: a piece, as page number and length, and whether the copy has
	// failed at the puller.
	gaveValid  = 1 << 63
	gaveFailed = 1 << 62
	gaveShift  = 24
	gavePage   = 4096

	// pullerWrites, in pullState.puller: the copy goes into the region.
	pullerWrites = 1 << 32
)

// abandon aborts the current copy when a region is deregistered, and reports whether the
// slot is free.
func (ps *pullState) abandon() bool {
	for {
		st := ps.state.Load()
		switch st & epochValue {
		case pullIdle:
			return true
		case pullOpen:
			if ps.over(st>>epochShift, ps.length) {
				ps.recycle(st >> epochShift)
				return true
			}
			if ps.state.CompareAndSwap(st, st&^epochValue|pullAborted) {
				return false
			}
		default:
			return false
		}
	}
}

// over reports whether all bytes of a copy have arrived. The length is an argument,
// because a late puller must not read that of the next copy.
func (ps *pullState) over(epoch, length uint64) bool {
	v := ps.done.Load()
	return v>>epochShift != epoch || v&epochValue == length
}

// recycle prepares the slot for the next copy. Only the owner may call it, or the puller
// of an aborted copy.
func (ps *pullState) recycle(epoch uint64) {
	next := (epoch + 1) << epochShift
	ps.gave.Publish(0)
	ps.cursor.Publish(next)
	ps.done.Publish(next)
	ps.state.PublishFenced(next | pullIdle)
}

// startPull begins an OpPull.
func (t *transferTable) startPull(d *Device, x *transfer) {
	x.slot = x.peer.seg.access(x.key, x.remote, uint64(x.body.Len()), rdma.Cooperative)
	if x.slot == nil {
		t.finish(d, x, rdma.StatusRemoteAccess)
		return
	}
	x.phase = phaseOpening
	if over, s := t.stepOpening(d, x); over {
		t.finish(d, x, s)
	} else if x.phase == phaseShared {
		t.opened = append(t.opened, x)
	} else {
		t.active = append(t.active, x)
	}
}

// copyOpened copies pieces of the pulls that were opened by one post: first one of each, so
// that their owner finds its part of each, then the rest up to postedPull. A caller that
// continues to compute would leave the rest until it waits.
func (t *transferTable) copyOpened(d *Device) {
	for i, x := range t.opened {
		if over, s := t.stepShared(d, x); over {
			t.finish(d, x, s)
			t.opened[i] = nil
		}
	}
	for i, x := range t.opened {
		if x != nil {
			t.copyMore(d, x, false, rdma.StatusOK, postedPull)
			t.opened[i] = nil
		}
	}
	t.opened = t.opened[:0]
}

// copyMore copies more pieces of a copy that was just opened, until limit bytes are copied or
// the other side has the last one. A caller that continues to compute would leave the rest
// until it waits.
func (t *transferTable) copyMore(d *Device, x *transfer, over bool, s rdma.Status, limit uint64) {
	for !over && x.phase == phaseShared && x.done < limit {
		before := x.done
		if over, s = t.stepShared(d, x); x.done == before {
			break
		}
	}
	if over {
		t.finish(d, x, s)
	} else {
		t.active = append(t.active, x)
	}
}

// stepOpening opens the region for the pull, once it has no other.
func (t *transferTable) stepOpening(d *Device, x *transfer) (bool, rdma.Status) {
	ps := &x.slot.pull
	st := ps.state.Load()
	if x.slot.key.Load() != x.key {
		return true, rdma.StatusRemoteAccess
	}
	if st&epochValue != pullIdle || !ps.state.CompareAndSwap(st, st|pullOpening) {
		return false, rdma.StatusOK
	}
	if x.slot.key.Load() != x.key {
		// Deregistered in between, see deregister.
		ps.state.PublishFenced(st)
		return true, rdma.StatusRemoteAccess
	}
	dest := x.body.Addr()
	if d.seg.heap {
		acc := rdma.RemoteWrite
		if x.op == rdma.OpWrite {
			acc = rdma.RemoteRead
		}
		mr, err := d.regs.register(x.body, acc)
		if err != nil {
			ps.state.PublishFenced(st)
			return false, rdma.StatusOK // a registration will become free
		}
		x.own, dest = mr, mr.RKey
	}
	x.epoch, x.length = st>>epochShift, uint64(x.body.Len())
	ps.length, ps.source, ps.dest, ps.puller = x.length, x.remote, dest, uint64(d.index)
	if x.op == rdma.OpWrite {
		ps.puller |= pullerWrites
	}
	ps.cursor.Publish(st)
	ps.done.Publish(st)
	x.phase = phaseShared
	if x.peer.reach == reachMessages {
		// Only the puller transfers anything: it claims and requests all of it.
		ps.cursor.Publish(claimedAll(x.epoch, x.length))
		x.phase = phaseMessages
	}
	ps.state.Publish(st | pullOpen)
	x.peer.seg.head.pullCount.Add(1)
	if x.body.Len() >= helpFrom && !d.attr.Oversubscribed || x.body.Len() == 0 {
		x.peer.seg.unpark()
	}
	if x.phase == phaseMessages {
		return t.stepMessages(d, x)
	}
	return false, rdma.StatusOK
}

// startPush begins an OpPush on an own region.
func (t *transferTable) startPush(d *Device, x *transfer) {
	i := x.key & keySlotMask
	if i < uint64(d.regs.fresh) {
		x.slot = d.seg.slot(int(i))
	}
	if own := d.seg.region(int(i)); x.slot == nil || own.key.Load() != x.key || rdma.Access(own.rights.Load())&rdma.Cooperative == 0 {
		t.finish(d, x, rdma.StatusRemoteAccess)
		return
	}
	x.phase = phaseOffered
	if x.accept() {
		t.active = append(t.active, x)
	} else {
		t.offered = append(t.offered, x)
	}
}

// accept reports whether a puller has opened the region, and joins it.
func (x *transfer) accept() bool {
	st := x.slot.pull.state.Load()
	if st&epochValue != pullOpen || x.slot.pull.puller&pullerWrites != 0 != (x.op == opAssist) {
		return false
	}
	x.epoch, x.length = st>>epochShift, x.slot.pull.length
	x.phase = phaseShared
	return true
}

// checkOffers finds the pushes that have a puller. Each pull is counted after it was
// opened, so the search ends when as many have been found as were counted; one that is
// found before it was counted makes a later call search again.
func (t *transferTable) checkOffers(d *Device) {
	seen := d.seg.head.pullCount.Load()
	if seen == t.pullsSeen {
		return
	}
	left := seen - t.pullsSeen
	t.pullsSeen = seen
	kept := t.offered[:0]
	for i, x := range t.offered {
		if left == 0 {
			kept = append(kept, t.offered[i:]...)
			break
		}
		if x.accept() {
			t.active = append(t.active, x)
			left--
		} else {
			kept = append(kept, x)
		}
	}
	clear(t.offered[len(kept):])
	t.offered = kept
}

// withdraw ends the push of a region that was deregistered before any pull.
func (t *transferTable) withdraw(d *Device, key uint64) {
	t.offered = slices.DeleteFunc(t.offered, func(x *transfer) bool {
		if x.key != key {
			return false
		}
		t.finish(d, x, rdma.StatusFlushed)
		return true
	})
}

// stepShared claims and copies one piece of a copy, from either side.
func (t *transferTable) stepShared(d *Device, x *transfer) (bool, rdma.Status) {
	if x.op == rdma.OpPush || x.op == opAssist {
		return d.stepPush(x)
	}
	return d.stepPull(x)
}

func (d *Device) stepPull(x *transfer) (bool, rdma.Status) {
	ps := &x.slot.pull
	if ps.over(x.epoch, x.length) {
		return true, d.endPull(x)
	}
	if ps.state.Load() == x.epoch<<epochShift|pullAborted {
		// The owner copies nothing more: it has deregistered in the same thread that
		// would.
		ps.recycle(x.epoch)
		x.status = rdma.StatusRemoteAccess
		return true, d.endPull(x)
	}
	if d.copies.beside && x.leaveToOwner() {
		return false, rdma.StatusOK
	}
	off, n := ps.claim(x)
	if n == 0 {
		if off, n = ps.takeBack(); n == 0 {
			return false, rdma.StatusOK // the owner is copying the last piece
		}
		if n > x.length || off > x.length-n {
			x.status = rdma.StatusFault // no such piece: this owner's data is invalid
			return true, d.endPull(x)
		}
	}
	for to := x.body.Bytes()[off : off+n]; len(to) > 0 && x.status == rdma.StatusOK; {
		moved, s := d.move(x.peer, x.op == rdma.OpWrite, to, x.remote+off, x.key, x.need())
		if s == statusRefused {
			// Rare: the kernel denies access in the middle of a copy.
			s = rdma.StatusFault
		}
		x.status = s
		off, to = off+uint64(moved), to[moved:]
	}
	if x.status != rdma.StatusOK {
		x.abort(n)
	} else {
		x.account(n, x.peer)
	}
	if ps.over(x.epoch, x.length) {
		return true, d.endPull(x)
	}
	return false, rdma.StatusOK
}

// takeBack returns a piece that the owner could not copy.
func (ps *pullState) takeBack() (off, n uint64) {
	g := ps.gave.Load()
	if g&gaveValid == 0 || !ps.gave.CompareAndSwap(g, g&^gaveValid) {
		return 0, 0
	}
	g &^= gaveValid | gaveFailed
	return g >> gaveShift * gavePage, g & (1<<gaveShift - 1)
}

// abort ends a copy that cannot continue, of which the puller holds n bytes. It claims
// all unclaimed pieces and counts them as done; it waits as usual for the owner, which may
// be writing a piece at this moment.
func (x *transfer) abort(n uint64) {
	ps := &x.slot.pull
	for {
		g := ps.gave.Load()
		if ps.gave.CompareAndSwap(g, g|gaveFailed) {
			break
		}
	}
	for {
		c := ps.cursor.Load()
		if ps.cursor.CompareAndSwap(c, claimedAll(x.epoch, x.length)) {
			n += countUnclaimed(c, x.length)
			break
		}
	}
	if _, given := ps.takeBack(); given > 0 {
		n += given
	}
	x.account(n, x.peer)
}

// account adds to the bytes that have arrived and, at the last one, wakes the other side,
// which may sleep because it had nothing left to claim. If the side that opened the copy
// computes, the goroutine waiting beside it is woken, so that operations that depend on
// the copy can continue. The owner of the region is not woken: it takes no part in what
// follows, and sees the end when it polls.
func (x *transfer) account(n uint64, other *peer) {
	x.done += n
	if x.slot.pull.done.Add(n)&epochValue != x.length {
		return
	}
	if x.opens() {
		other.seg.unpark()
	} else {
		other.seg.wakeWaiter()
	}
}

// endPull returns the status of a finished pull.
func (d *Device) endPull(x *transfer) rdma.Status {
	if x.own.RKey != 0 {
		d.regs.deregister(x.own.RKey)
		x.own = rdma.MR{}
	}
	x.done = uint64(x.body.Len())
	return x.status
}

func (d *Device) stepPush(x *transfer) (bool, rdma.Status) {
	ps := &x.slot.pull
	if x.slot.key.Load() != x.key {
		return true, rdma.StatusFlushed
	}
	if x.length > d.seg.region(int(x.key&keySlotMask)).size.Load() {
		ps.recycle(x.epoch) // more than the region holds: this puller is not served
		return true, rdma.StatusFault
	}
	puller := d.peer(rdma.PeerID(uint32(ps.puller)))
	if !d.copies.beside && x.mayHelp(puller) {
		if off, n := ps.claim(x); n > 0 {
			d.pushPiece(x, puller, off, n)
		}
	}
	if !ps.over(x.epoch, x.length) {
		return false, rdma.StatusOK
	}
	s := rdma.StatusOK
	if ps.gave.Load()&gaveFailed != 0 {
		s = rdma.StatusFault
	}
	if puller != nil {
		x.peer = puller
	}
	x.done = x.length
	ps.recycle(x.epoch)
	return true, s
}

// mayHelp reports whether the owner can write into the puller's memory.
func (x *transfer) mayHelp(puller *peer) bool {
	return puller != nil && puller.reach != reachMessages && x.status == rdma.StatusOK
}

// pushPiece copies a claimed piece between our region and the memory of the side that
// opened the copy. If that is not possible, it returns the piece, and this side stops
// helping.
func (d *Device) pushPiece(x *transfer, puller *peer, off, n uint64) {
	ps := &x.slot.pull
	remote, key, need, own := ps.dest+off, uint64(0), rdma.RemoteWrite, rdma.Cooperative
	if x.op == opAssist {
		need, own = rdma.RemoteRead, rdma.RemoteWrite
	}
	if d.seg.heap {
		key = ps.dest
		remote = puller.seg.baseOf(key) + off
	}
	from, ok := d.seg.memory(x.key, ps.source+off, n, own)
	if !ok {
		x.giveBack(puller, off, n, rdma.StatusRemoteAccess) // the puller named bytes outside the region
		return
	}
	for len(from) > 0 {
		moved, s := d.move(puller, x.op == rdma.OpPush, from, remote, key, need)
		if s != rdma.StatusOK {
			x.giveBack(puller, off, n, s)
			return
		}
		remote, from = remote+uint64(moved), from[moved:]
	}
	x.account(n, puller)
}

// giveBack returns a piece to the puller, because it cannot be copied from here.
func (x *transfer) giveBack(puller *peer, off, n uint64, s rdma.Status) {
	ps := &x.slot.pull
	x.status = s
	for {
		g := ps.gave.Load()
		if ps.gave.CompareAndSwap(g, g&gaveFailed|gaveValid|off/gavePage<<gaveShift|n) {
			break
		}
	}
	puller.seg.wakeWaiter()
}

// opens reports whether this is the side that opened the copy.
func (x *transfer) opens() bool { return x.op == rdma.OpPull || x.op == rdma.OpWrite }

// sends reports whether the data is this side's.
func (x *transfer) sends() bool { return x.op == rdma.OpPush || x.op == rdma.OpWrite }

// canMove reports whether stepShared would do something.
func (x *transfer) canMove(d *Device) bool {
	ps := &x.slot.pull
	if ps.over(x.epoch, x.length) || x.slot.key.Load() != x.key {
		return true
	}
	if countUnclaimed(ps.cursor.Load(), x.length) > 0 {
		return x.opens() || x.mayHelp(d.peer(rdma.PeerID(uint32(ps.puller))))
	}
	return x.opens() && ps.gave.Load()&gaveValid != 0
}

// detach leaves a copy that is ended from outside, because the peer is gone or the queue
// pair closes. The memory may be reused when this returns, so it waits for an owner that
// is writing a piece, which takes microseconds.
func (d *Device) detach(x *transfer) {
	if !x.opens() || x.phase != phaseShared && x.phase != phaseMessages || x.slot == nil {
		return
	}
	if x.phase == phaseMessages {
		x.abort(x.length)
	} else {
		x.abort(0)
	}
	for end := time.Now().Add(time.Second); !x.slot.pull.over(x.epoch, x.length); runtime.Gosched() {
		if x.peer.gone || time.Now().After(end) || x.slot.key.Load() != x.key {
			break
		}
	}
	d.endPull(x)
}
