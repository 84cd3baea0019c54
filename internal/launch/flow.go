package launch

// Flow control for output and input. Data that is not read waits at its source, so that
// signals, fences and failure reports are not delayed behind it.

import "sync"

// windowBytes limits the data of a stream in transit.
const windowBytes = 256 << 10

// window blocks a sender while too much of its data is unread.
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

// take waits until n bytes may be sent. Data longer than the window is sent when nothing
// else is in transit. It returns false if the window was closed.
func (w *window) take(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed && w.onWay > 0 && w.onWay+n > windowBytes {
		w.wake.Wait()
	}
	w.onWay += n
	return !w.closed
}

// acknowledge records that the other side has read n bytes.
func (w *window) acknowledge(n int) {
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

// inbox queues received items for one goroutine, so that the reader of the connection
// never blocks. Windows bound its size.
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

// close makes take return false after the remaining items.
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
