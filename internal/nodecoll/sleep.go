package nodecoll

// Sleeping and waking. A rank that has waited for long sleeps until the awaited rank
// publishes something. It sleeps in the Driver, not in the segment, so that messages and
// deaths wake it too; the waker sends it a message.
//
//	sleeper    asleep = q+1; has q published?   yes: asleep q+1 → 0, if unchanged: awake
//	q          publishes; is any rank asleep?   asleep q+1 → 0, if unchanged: wake it
//
// Each side stores before it loads, so at least one of them sees the other, and only one
// of them can change q+1 to 0: a wake-up message is sent if and only if it is awaited.
//
// That takes a full barrier between store and load on both sides. q has none when it
// publishes by a plain store: it would pay for a sleeper that is seldom there. Then the
// sleeper makes the kernel execute one on every core that runs a rank (membarrier, for
// which all ranks have registered). If q's store came before that, the sleeper sees it; if
// q's load comes after, q sees the sleeper; and a store before and a load after it are in
// order.

import (
	"github.com/muster-mpi/muster/internal/shmem"
)

// raise publishes a word of this rank's section and wakes the ranks that sleep for it.
func (t *Team) raise(w *word, v uint64) error {
	if t.fenced {
		w.PublishFenced(v)
	} else {
		w.Publish(v)
	}
	if t.call.what != 0 {
		t.note()
	}
	if t.seg.head.sleepers.Load() != 0 {
		return t.wake()
	}
	return nil
}

// wake wakes the ranks that sleep for this one.
func (t *Team) wake() error {
	for r := range t.seg.sections {
		asleep := &t.seg.sections[r].asleep
		if name := uint32(t.rank + 1); asleep.Load() == name && asleep.CompareAndSwap(name, 0) {
			if err := t.driver.Wake(t.call.op, r, t.rank); err != nil {
				return err
			}
		}
	}
	return nil
}

// pollOnce polls between reads of the awaited word.
func (t *Team) pollOnce(n int) (idle bool, err error) {
	idle, err = t.driver.Poll(t.call.op, n)
	if err == nil {
		err = t.faulty()
	}
	if err != nil {
		t.broken = err // the ranks are in different rounds from now on
	}
	return idle, err
}

// prepareSleep announces that the caller is about to sleep for a rank. The caller must
// check the word once more before it does.
func (t *Team) prepareSleep(q int) {
	t.seg.head.sleepers.Add(1)
	t.mine.asleep.Store(uint32(q + 1))
	if !t.fenced {
		shmem.GlobalBarrier()
	}
}

// sleep sleeps, unless the word has been published or there is a fault.
func (t *Team) sleep(q int, seen bool) (err error) {
	seen = seen || t.seg.head.fault.found()
	if !seen || !t.mine.asleep.CompareAndSwap(uint32(q+1), 0) {
		err = t.driver.Sleep(t.call.op, q)
	}
	if err != nil {
		t.mine.asleep.Store(0)
		t.broken = err
	}
	t.seg.head.sleepers.Add(-1)
	return err
}
