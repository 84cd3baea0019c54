//go:build !muster_portable

package soft

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// pipe gives a device a source that the test can make readable.
func (d *testDevice) pipe(t *testing.T) (arrive func()) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	d.SetSource(fds[0], nil)
	return func() {
		if _, err := unix.Write(fds[1], []byte{1}); err != nil {
			t.Error(err)
		}
	}
}

// TestWaitEnds checks what ends a Wait, and that nothing is needed where Poll has work.
func TestWaitEnds(t *testing.T) {
	d := newTestDevice(t)
	arrive := d.pipe(t)
	c := d.newQueue(t)
	wait := func(what string, timeout time.Duration, event func()) {
		t.Helper()
		if event != nil {
			time.AfterFunc(5*time.Millisecond, event)
		}
		begin := time.Now()
		if err := c.Wait(timeout); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: Wait lasted %v", what, took)
		}
	}
	locked := func(do func()) func() {
		return func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			do()
		}
	}
	wait("the timeout", time.Millisecond, nil)
	wait("Wake", time.Minute, c.Wake)
	c.Wake()
	wait("Wake before", time.Minute, nil)
	wait("WakeAll", time.Minute, locked(d.WakeAll))
	wait("a completion by another goroutine", time.Minute, locked(func() { c.Push(rdma.Completion{}) }))
	wait("a completion before", time.Minute, nil)
	c.Take(make([]rdma.Completion, 1))
	d.due = 2 * time.Millisecond
	wait("a timer", time.Minute, nil)
	d.due = Forever
	locked(d.MarkMoved)()
	wait("progress by the thread", time.Minute, nil)
	c.Begin()
	wait("an arrival", time.Minute, arrive)
	if d.Waiting() {
		t.Error("a waiter is counted although none is there")
	}
}

// TestArm checks how an arming ends.
func TestArm(t *testing.T) {
	d := newTestDevice(t)
	arrive := d.pipe(t)
	c := d.newQueue(t)
	arm := func() time.Duration { return c.Arm(rdma.NotifyAny, time.Minute) }
	is := func(when string, want bool) {
		t.Helper()
		if d.Waiting() != want || (d.sleeps > 0) != want {
			t.Errorf("%s: waiting %v with %d prepared sleeps, want %v", when, d.Waiting(), d.sleeps, want)
		}
	}
	arm()
	is("armed", true)
	c.Begin()
	is("after a Poll", false)
	arm()
	c.Disarm()
	is("after Disarm", false)
	arm()
	time.AfterFunc(2*time.Millisecond, c.Wake)
	if err := c.WaitArmed(time.Minute); err != nil {
		t.Fatal(err)
	}
	is("after WaitArmed", false)

	file := c.File()
	readable := func() bool {
		fds := []unix.PollFd{{Fd: int32(file), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n > 0
	}
	arm()
	arm() // two goroutines sleep on the file
	c.Begin()
	is("after a Poll beside sleepers on File", true)
	if c.Push(rdma.Completion{}); !readable() {
		t.Error("a completion does not end the sleep on File")
	}
	if got := arm(); got != 0 {
		t.Errorf("Arm returns %v with a completion", got)
	}
	if c.Disarm(); !readable() {
		t.Error("the event was cleared while another goroutine sleeps on File")
	}
	if c.Disarm(); readable() {
		t.Error("the event was not cleared by the last sleeper")
	}
	is("after both", false)
	c.Take(make([]rdma.Completion, 1))
	if arrive(); !readable() {
		t.Error("an arrival does not show on File")
	}
}

// TestBelow sleeps on two queues of other devices.
func TestBelow(t *testing.T) {
	var b Below
	if err := b.Open(); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var devices []*testDevice
	var queues []*testQueue
	for range 2 {
		d := newTestDevice(t)
		d.pipe(t)
		devices, queues = append(devices, d), append(queues, d.newQueue(t))
		if err := b.Add(queues[len(queues)-1]); err != nil {
			t.Fatal(err)
		}
	}
	is := func(when string, want ...int) {
		t.Helper()
		for i, d := range devices {
			if d.sleeps != want[i] {
				t.Errorf("%s: device %d has %d prepared sleeps, want %d", when, i, d.sleeps, want[i])
			}
		}
	}
	devices[1].due = time.Second
	if got := b.Sleep(time.Minute); got != time.Second || !b.Sleeping() {
		t.Errorf("Sleep returns %v, want the timer of the second device", got)
	}
	b.Sleep(time.Minute)
	is("two sleeps", 2, 2)
	b.Awake()
	devices[1].due = 0
	if got := b.Sleep(time.Minute); got != 0 {
		t.Errorf("Sleep returns %v although a device has work", got)
	}
	is("a sleep that was refused", 1, 1)
	b.Awake()
	is("awake", 0, 0)
	if b.Sleeping() {
		t.Error("a sleep is counted")
	}
	if err := b.Add(plainCQ{}); err == nil {
		t.Error("a queue without a file is accepted")
	}
}

type plainCQ struct{ rdma.CQ }

func (plainCQ) File() int { return -1 }

// TestThreadServes checks that the progress thread works while the application is away,
// and neither while it waits nor after Close.
func TestThreadServes(t *testing.T) {
	d := newTestDevice(t)
	d.pipe(t)
	d.Thread.Timers = true
	served := 0
	d.hooks.Progress = func() time.Duration { served++; return 0 }
	c := d.newQueue(t)
	d.mu.Lock()
	d.due = time.Millisecond
	err := d.StartThread()
	d.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return served
	}
	for end := time.Now().Add(20 * time.Second); count() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the thread does nothing although timers are due")
		}
	}
	if c.Arm(rdma.NotifyAny, time.Minute) <= 0 {
		t.Fatal("Arm reports work")
	}
	before := count()
	time.Sleep(20 * time.Millisecond)
	if n := count() - before; n > 1 {
		t.Errorf("the thread worked %d times beside a waiter", n)
	}
	c.Disarm()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Close()
}
