package launch

// roster holds the ranks of a job: which have started, and which have ended and how.
type roster struct {
	all     []rankState
	pending int // ranks not started yet
	living  int
	ended   int // ranks that exited since the first failure
}

type rankState struct {
	pid     int
	started bool
	alive   bool
	end     ending
}

func newRoster(ranks int) roster { return roster{all: make([]rankState, ranks), pending: ranks} }

func (r *roster) start(rank, pid int) {
	s := &r.all[rank]
	s.started, s.alive, s.pid = true, true, pid
	r.living++
	r.pending = max(0, r.pending-1)
}

// remove records the end of a rank; false if it was not alive.
func (r *roster) remove(rank int, end ending) bool {
	s := &r.all[rank]
	if !s.alive {
		return false
	}
	s.alive, s.end = false, end
	r.living--
	r.ended++
	return true
}

func (r *roster) hasEnded(rank int) bool { return r.all[rank].started && !r.all[rank].alive }

// firstEnded returns the lowest rank that has ended.
func (r *roster) firstEnded() (rank int, ok bool) {
	for rank := range r.all {
		if r.hasEnded(rank) {
			return rank, true
		}
	}
	return 0, false
}
