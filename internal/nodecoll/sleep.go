package nodecoll

// Sleeping and waking. A rank that has waited in vain for long sleeps until the
// rank that it waits for publishes something. It sleeps in the Driver, not in the
// segment, so that messages and deaths wake it too; the waker sends it a message.
//
//	sleeper    asleep = q+1; has q published?   yes: asleep q+1 → 0, if still so: awake
//	q          publishes; does anybody sleep?   asleep q+1 → 0, if still so: wake it
//
// Each stores before it looks, so at least one of them sees the other, and only one
// of them can turn q+1 into 0: there is a message if and only if it is waited for.
//
// That takes a full barrier between store and look on both sides. q has none when
// it publishes by a plain store: it would pay for a sleeper that is seldom there.
// Then the sleeper has the kernel make one on every core that runs a rank
// (membarrier, for which all ranks have registered): if q's store came before
// that, the sleeper sees it; if q's look comes after, q sees the sleeper; and a
// store and a look that are on both sides of it are in order.

// raise publishes a word of this rank's section and wakes those who sleep for it.
func (t *Team) raise(w *word, v uint64) error {
	if t.fenced {
		w.publishFenced(v)
	} else {
		w.publish(v)
	}
	if t.call.what != 0 {
		t.note()
	}
	if t.seg.head.sleepers.Load() != 0 {
		return t.wake()
	}
	return nil
}

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

// pollOnce is called between looks.
func (t *Team) pollOnce(n int) (idle bool, err error) {
	idle, err = t.driver.Poll(n)
	if err == nil {
		err = t.faulty()
	}
	if err != nil {
		t.broken = err // the ranks are no longer in step
	}
	return idle, err
}

// prepareSleep says that the caller is about to sleep for a rank. It must look once
// more before it does.
func (t *Team) prepareSleep(q int) {
	t.seg.head.sleepers.Add(1)
	t.mine.asleep.Store(uint32(q + 1))
	if !t.fenced {
		membarrier()
	}
}

// sleep sleeps, unless there is something to see already.
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
