package launch

// Equal errors of many ranks. If a rank fails, all others end with the same error: the first
// is printed, and the report of the job names the ranks that had it too.

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
)

// mostFolds limits the memory for different errors.
const mostFolds = 100

// folds has the errors that ranks have printed.
type folds struct {
	mu     sync.Mutex
	errors []foldedError
}

type foldedError struct {
	text  string
	first int   // the rank whose line was printed
	also  []int // in the order of their lines
}

// rest returns what is to be printed of the lines of a rank's stderr: not the error with which
// the library ends it if another rank has had the same one.
func (f *folds) rest(rank int, text []byte) []byte {
	ours := []byte("muster: ")
	if !bytes.Contains(text, ours) {
		return text
	}
	var kept []byte
	for line := range bytes.Lines(text) {
		what, ok := bytes.CutPrefix(line, ours)
		what, _ = bytes.CutPrefix(what, fmt.Appendf(nil, "rank %d: ", rank))
		if !ok || !f.folded(rank, string(what)) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// folded reports whether another rank has printed the error, and records that this one has it.
func (f *folds) folded(rank int, text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.errors, func(e foldedError) bool { return e.text == text })
	switch {
	case i >= 0 && f.errors[i].first != rank:
		f.errors[i].also = append(f.errors[i].also, rank)
		return true
	case i < 0 && len(f.errors) < mostFolds:
		f.errors = append(f.errors, foldedError{text: text, first: rank})
	}
	return false
}

// lines returns the lines about ranks whose errors were not printed.
func (f *folds) lines() (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.errors {
		if len(e.also) > 0 {
			slices.Sort(e.also)
			lines = append(lines, ranksWith(slices.Compact(e.also), fmt.Sprintf("{has|have} the same error as rank %d", e.first)))
		}
	}
	return lines
}
