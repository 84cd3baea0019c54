package launch

// Windows, so that output nobody reads and input nobody takes wait where they are,
// and signals, fences and deaths go past them.

import "sync"

// windowBytes is how much of a stream may be on its way.
const windowBytes = 256 << 10

// window lets a sender go on while not too much of what it sent is unread.
type window struct {
	mu     sync.Mutex
	wake   sync.Cond
	onWay  int
	closed bool
}

func newWindow() *window {
	w := &window{}
	w.wake.L = &w.mu
	return w
}

// take waits until n bytes may be sent. A piece longer than the window goes when
// nothing else is on its way. It returns false when the window was closed.
func (w *window) take(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed && w.onWay > 0 && w.onWay+n > windowBytes {
		w.wake.Wait()
	}
	w.onWay += n
	return !w.closed
}

// arrived tells that n bytes have been read on the other side.
func (w *window) arrived(n int) {
	w.mu.Lock()
	w.onWay -= n
	w.mu.Unlock()
	w.wake.Broadcast()
}

func (w *window) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wake.Broadcast()
}

// inbox holds what has come until one goroutine has dealt with it, so that whoever
// reads the connection is never kept waiting. Windows bound it.
type inbox[T any] struct {
	mu     sync.Mutex
	wake   sync.Cond
	items  []T
	closed bool
}

func newInbox[T any]() *inbox[T] {
	b := &inbox[T]{}
	b.wake.L = &b.mu
	return b
}

func (b *inbox[T]) put(item T) {
	b.mu.Lock()
	b.items = append(b.items, item)
	b.mu.Unlock()
	b.wake.Signal()
}

// close lets take end after the items that are there.
func (b *inbox[T]) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wake.Broadcast()
}

func (b *inbox[T]) take() (item T, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.items) == 0 && !b.closed {
		b.wake.Wait()
	}
	if len(b.items) == 0 {
		return item, false
	}
	item = b.items[0]
	b.items = b.items[1:]
	return item, true
}

func (b *inbox[T]) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items)
}
