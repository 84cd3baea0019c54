package launch

import "sync"

// mailbox queues the events of a job for its loop. It grows as needed: the ranks of a
// local job are started before the loop begins.
type mailbox struct {
	wake chan struct{} // receives after a put

	mu    sync.Mutex
	items []event
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) put(e event) {
	m.mu.Lock()
	m.items = append(m.items, e)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// takeAll returns the queued events and empties the mailbox.
func (m *mailbox) takeAll() []event {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = nil
	return items
}
