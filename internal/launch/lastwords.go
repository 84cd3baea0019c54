package launch

import (
	"io"
	"strings"
	"sync"
	"time"
)

// lastWords keeps the end of what a remote shell or an agent writes to stderr: it
// is what people need to see when the connection fails.
type lastWords struct {
	mu    sync.Mutex
	tail  []byte
	ended chan struct{}
}

const maxLastWords = 8 << 10

func listen(r io.Reader) *lastWords {
	w := &lastWords{ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		buf := make([]byte, 4<<10)
		for {
			n, err := r.Read(buf)
			w.mu.Lock()
			w.tail = append(w.tail, buf[:n]...)
			if extra := len(w.tail) - maxLastWords; extra > 0 {
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

// words waits a moment for the end of stderr, which a process in the background
// may hold open, and gives the line that tells most: the head of a crash, else the
// last one.
func (w *lastWords) words() string {
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
