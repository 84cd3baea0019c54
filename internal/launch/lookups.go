package launch

import "sync"

// lookups are requests for values that wait for their answers, by number.
type lookups struct {
	mu      sync.Mutex
	last    int64
	waiting map[int64]func(value string, ok bool)
}

// add returns the number of a new request. done is called with its answer.
func (l *lookups) add(done func(value string, ok bool)) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[int64]func(string, bool){}
	}
	l.last++
	l.waiting[l.last] = done
	return l.last
}

// answer completes a request with the body of an answer. An answer to an unknown request
// is ignored.
func (l *lookups) answer(body []byte) error {
	number, value, ok, err := readAnswer(body)
	if err != nil {
		return err
	}
	l.mu.Lock()
	done := l.waiting[number]
	delete(l.waiting, number)
	l.mu.Unlock()
	if done != nil {
		done(value, ok)
	}
	return nil
}
