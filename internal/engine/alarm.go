package engine

import (
	"sync/atomic"
	"time"
)

// alarm is what the progress thread sleeps on besides a device: a timer, and a signal of
// another goroutine. Ranks that are goroutines of one process use timers of the Go runtime,
// processes on Linux those of the kernel (alarm_linux_unsafe.go): a timer of the runtime wakes
// another thread first, which then wakes this one, and each may wait for a busy core.
type alarm struct {
	kernel kernelAlarm
	timer  *time.Timer
	rung   chan struct{} // nil: the kernel's
	// inLane is the completion queue in which the thread sleeps because it has no file.
	inLane atomic.Pointer[lane]
}

func (a *alarm) open(inProcess bool) {
	if !inProcess && a.kernel.open() {
		return
	}
	a.rung = make(chan struct{}, 1)
	a.timer = time.AfterFunc(time.Hour, a.signal)
	a.timer.Stop()
}

// set sets the alarm; 0 turns it off.
func (a *alarm) set(after time.Duration) {
	switch {
	case a.rung == nil:
		a.kernel.set(after)
	case after == 0:
		a.timer.Stop()
	default:
		a.timer.Reset(after)
	}
}

// signal ends the current sleep, or the next one.
func (a *alarm) signal() {
	if a.rung == nil {
		a.kernel.signal()
	} else {
		select {
		case a.rung <- struct{}{}:
		default:
		}
	}
	if d := a.inLane.Load(); d != nil {
		d.notify.Wake()
	}
}

// sleep sleeps until the alarm is due or was signaled.
func (a *alarm) sleep() {
	if a.rung == nil {
		a.kernel.sleep(-1, -1)
		return
	}
	<-a.rung
}

// sleepIn is sleep that an event of an armed lane ends too.
func (a *alarm) sleepIn(d *lane, limit time.Duration) {
	if a.rung == nil && d.file >= 0 {
		a.kernel.sleep(d.file, limit)
		return
	}
	if a.rung == nil {
		limit = min(limit, unfiledSleep)
	}
	a.inLane.Store(d)
	select {
	case <-a.rung:
	default:
		_ = d.notify.WaitArmed(limit)
	}
	a.inLane.Store(nil)
}

// unfiledSleep bounds the sleep in a lane without a file by a thread whose timer is a file.
const unfiledSleep = 5 * time.Millisecond

func (a *alarm) close() {
	if a.rung == nil {
		a.kernel.close()
		return
	}
	a.timer.Stop()
}
