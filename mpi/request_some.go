package mpi

// Calls that complete one or some of several requests, and tests of all (MPI-4.1 section
// 3.7.5).

import (
	"context"
	"errors"
	"iter"

	"github.com/muster-mpi/muster/internal/engine"
)

// WaitAny waits until one of the requests is complete, completes it, and returns its
// index. If all requests are null, the index is Undefined.
func WaitAny(reqs ...Request) (int, Status, error) { return waitAny(engine.NoContext, reqs) }

func waitAny(ctx context.Context, reqs []Request) (int, Status, error) {
	h := hookMany("WaitAny", CallWait, reqs)
	i, st, err := awaitOne(ctx, reqs)
	if h != nil {
		h.end(reqs, func(int) Status { return st }, err)
	}
	return i, st, err
}

func awaitOne(ctx context.Context, reqs []Request) (int, Status, error) {
	for {
		i, st, over, err := completeOne(reqs)
		if over {
			return i, st, err
		}
		if err := waitSome(ctx, reqs, inactive(reqs)+1); err != nil {
			return Undefined, noStatus, err
		}
	}
}

// completeOne completes the first request whose operation is complete. over reports
// that it did, or that all requests are null: then the index is Undefined.
func completeOne(reqs []Request) (i int, st Status, over bool, err error) {
	over = true
	for i, r := range reqs {
		if !r.Active() {
			continue
		}
		if r.done() {
			reqs[i] = Request{}
			st, _, err := r.test()
			return i, st, true, err
		}
		over = false
	}
	return Undefined, noStatus, over, nil
}

func inactive(reqs []Request) int {
	n := 0
	for _, r := range reqs {
		if !r.op.Active() {
			n++
		}
	}
	return n
}

// Completed is the result of one of several requests.
type Completed struct {
	Index  int
	Status Status
	Err    error
}

// Completions completes the requests in the order in which their operations end, and sets
// them to Request{}. If ctx ends, the loop does too, with an error of class ErrPending and
// the index Undefined; the requests that are left can still be waited for.
func Completions(ctx context.Context, reqs []Request) iter.Seq2[Completed, error] {
	return func(yield func(Completed, error) bool) {
		for {
			i, st, err := waitAny(ctx, reqs)
			if i == Undefined && err == nil {
				return
			}
			if !yield(Completed{i, st, err}, err) || i == Undefined {
				return
			}
		}
	}
}

// WaitSome waits until at least one request is complete, and completes all that are.
func WaitSome(reqs ...Request) ([]Completed, error) {
	h := hookMany("WaitSome", CallWait, reqs)
	out, err := awaitSome(reqs)
	if h != nil {
		h.endSome(reqs, out, err)
	}
	return out, err
}

func awaitSome(reqs []Request) ([]Completed, error) {
	i, st, err := awaitOne(engine.NoContext, reqs)
	if i == Undefined {
		return nil, err
	}
	out := []Completed{{i, st, err}}
	for j, r := range reqs {
		if r.Active() && r.done() {
			reqs[j] = Request{}
			st, _, e := r.test()
			out = append(out, Completed{j, st, e})
			err = errors.Join(err, e)
		}
	}
	return out, err
}

// TestAll reports whether all requests are complete, and completes them if so, as
// [WaitAll] does.
func TestAll(reqs ...Request) (bool, error) {
	h := hookMany("TestAll", CallTest, reqs)
	var out []Status
	if h != nil {
		out = make([]Status, len(reqs))
	}
	done, err := testAll(reqs, out)
	if h != nil {
		h.end(reqs, func(i int) Status { return out[i] }, err)
	}
	return done, err
}

func testAll(reqs []Request, out []Status) (bool, error) {
	progress(reqs)
	for _, r := range reqs {
		if !r.done() {
			return false, nil
		}
	}
	return true, completeAll(reqs, out)
}

// TestAny reports whether one of the requests is complete, and completes it if so.
// If all requests are null, it returns true and the index Undefined.
func TestAny(reqs ...Request) (int, Status, bool, error) {
	h := hookMany("TestAny", CallTest, reqs)
	progress(reqs)
	i, st, over, err := completeOne(reqs)
	if h != nil {
		h.end(reqs, func(int) Status { return st }, err)
	}
	return i, st, over, err
}

// TestSome completes the requests whose operations are complete.
func TestSome(reqs ...Request) ([]Completed, error) {
	h := hookMany("TestSome", CallTest, reqs)
	out, err := completeSome(reqs)
	if h != nil {
		h.endSome(reqs, out, err)
	}
	return out, err
}

func completeSome(reqs []Request) ([]Completed, error) {
	progress(reqs)
	var out []Completed
	var errs error
	for i, r := range reqs {
		if r.Active() && r.done() {
			reqs[i] = Request{}
			st, _, err := r.test()
			out = append(out, Completed{i, st, err})
			errs = errors.Join(errs, err)
		}
	}
	return out, errs
}

// progress moves messages for callers that only test.
func progress(reqs []Request) {
	for _, r := range reqs {
		if r.op.Active() {
			r.c.e.Progress()
			return
		}
	}
}
