package launch

import (
	"io"
	"strings"
	"sync"
	"time"
)

// exitReport keeps the last output of a remote shell or an agent on stderr, for the error
// message when the connection fails.
type exitReport struct {
	mu    sync.Mutex
	tail  []byte
	ended chan struct{}
}

const maxExitReport = 8 << 10

// readExitReport reads stderr in the background.
func readExitReport(r io.Reader) *exitReport {
	w := &exitReport{ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		buf := make([]byte, 4<<10)
		for {
			n, err := r.Read(buf)
			w.mu.Lock()
			w.tail = append(w.tail, buf[:n]...)
			if extra := len(w.tail) - maxExitReport; extra > 0 {
				w.tail = append(w.tail[:0], w.tail[extra:]...)
			}
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return w
}

// line returns the most useful line: the first of a crash, otherwise the last. It waits
// up to 100 ms for the end of stderr, which a background process may hold open.
func (w *exitReport) line() string {
	select {
	case <-w.ended:
	case <-time.After(100 * time.Millisecond):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	best := ""
	for line := range strings.Lines(string(w.tail)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		best = line
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			break
		}
	}
	const most = 300
	return best[:min(len(best), most)]
}
