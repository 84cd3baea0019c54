package bench

// RDMA Write and Read: the leader issues them, the follower only polls. Over a bare
// socket, messages do the same.

import (
	"fmt"
	"runtime"

	"github.com/muster-mpi/muster/rdma"
)

func leadRemote(op rdma.Op) func(*VerbsSession, wire, *verbsTrial) ([]figure, error) {
	return func(s *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
		length, way := t.Size, op.String()
		if r, ok := w.(remoteWire); !ok {
			way = w.way(t.Size)
			if op == rdma.OpRead {
				length = 1 // the answer has the data
			}
		} else if !r.device().Attr().Ops.Has(op) || r.lossy() {
			return nil, fmt.Errorf("%w: no %v", rdma.ErrUnsupported, op)
		}
		if w.lossy() {
			return nil, fmt.Errorf("%w: answers may be lost", rdma.ErrUnsupported)
		}
		b := buffer(length)
		us, err := inBatches(t.Time, func(rounds int) error { return remoteOps(s, w, op, b, rounds, 1) }, 1)
		if err != nil {
			return nil, err
		}
		rate, err := windowsFor(t, t.Window*t.Size, func() error { return remoteOps(s, w, op, b, t.Window, t.Window) })
		return []figure{{"time", "us", us, way}, {"bandwidth", "MB/s", rate, way}}, err
	}
}

// remoteOps issues count Writes or Reads, at most window of them at once.
func remoteOps(s *VerbsSession, w wire, op rdma.Op, b []byte, count, window int) error {
	r, remote := w.(remoteWire)
	started, finished := 0, 0
	for finished < count {
		if started < count && started-finished < window {
			var err error
			if remote {
				err = r.start(op, b)
			} else {
				err = w.send(0, b)
			}
			if err != nil {
				return err
			}
			if started++; started < count && started-finished < window {
				continue
			}
		}
		var n int
		var err error
		if remote {
			n, err = r.finish(count)
		} else {
			n, err = w.take(0, count)
		}
		if err != nil {
			return err
		}
		if finished += n; n > 0 {
			s.noteProgress()
		} else if err := s.idle(); err != nil {
			return err
		}
	}
	return nil
}

// followRemote polls, and answers messages of a bare socket.
func followRemote(s *VerbsSession, w wire, t *verbsTrial) error {
	if _, remote := w.(remoteWire); remote {
		return pollUntilHalted(s, w)
	}
	b, err := FindVerbs(t.Bench)
	if err != nil {
		return err
	}
	out := buffer(b.answer(t.Size))
	for {
		if err := s.await(w, 0, 1); err != nil {
			return err
		}
		if err := w.send(0, out); err != nil {
			return err
		}
	}
}

// pollUntilHalted services the device of a passive target.
func pollUntilHalted(s *VerbsSession, w wire) error {
	for polls := 1; !s.halted.Load(); polls++ {
		if _, err := w.take(0, 1); err != nil {
			return err
		}
		if polls&1023 == 0 {
			runtime.Gosched()
		}
	}
	return errHalted
}
