package core

// Synchronization of windows (MPI-4.1 section 12.5).

import "github.com/muster-mpi/muster/mpi"

func synchronizations() map[string]handler {
	return map[string]handler{
		"Win_post":            perGroup((*win).Post),
		"Win_start":           perGroup((*win).Start),
		"Win_fence":           (*Process).winFence,
		"Win_complete":        perWin((*win).Complete),
		"Win_wait":            perWin((*win).Wait),
		"Win_test":            (*Process).winTest,
		"Win_lock":            (*Process).winLock,
		"Win_unlock":          perRank((*win).Unlock),
		"Win_lock_all":        (*Process).winLockAll,
		"Win_unlock_all":      perWin((*win).UnlockAll),
		"Win_flush":           perRank((*win).Flush),
		"Win_flush_local":     perRank((*win).FlushLocal),
		"Win_flush_all":       perWin((*win).FlushAll),
		"Win_flush_local_all": perWin((*win).FlushLocalAll),
		"Win_sync":            perWin((*win).Sync),
	}
}

// Assertions and types of locks.
const (
	modeNoCheck   = 1024
	modeNoStore   = 2048
	modeNoPut     = 4096
	modeNoPrecede = 8192
	modeNoSucceed = 16384

	lockExclusive = 234
	lockShared    = 235
)

// assertion returns an assertion. Those that are not for the call are errors.
func (a *args) assertion(i, allowed int) int {
	v := a.int(i)
	if v&^allowed != 0 {
		a.fail(errorf(errAssert, "the assertion is %d", v))
	}
	return v
}

func (p *Process) winFence(a *args) error {
	w, v := a.win(1), a.assertion(0, modeNoStore|modeNoPut|modeNoPrecede|modeNoSucceed)
	if a.err != nil {
		return a.err
	}
	if v&modeNoSucceed != 0 {
		return w.FenceEnd()
	}
	return w.Fence()
}

func (p *Process) winTest(a *args) error {
	w := a.win(0)
	done, err := w.Test()
	a.setFlag(1, done)
	return err
}

func (p *Process) winLock(a *args) error {
	w, kind, rank := a.win(3), a.int(0), a.int(1)
	v := a.assertion(2, modeNoCheck)
	if a.err == nil && kind != lockExclusive && kind != lockShared {
		return errorf(errLockType, "the type of the lock is %d", kind)
	}
	if a.err != nil || rank == procNull {
		return a.err
	}
	if v&modeNoCheck != 0 {
		return w.bytes.LockNoCheck(rank)
	}
	if kind == lockExclusive {
		return w.Lock(rank, mpi.LockExclusive)
	}
	return w.Lock(rank, mpi.LockShared)
}

func (p *Process) winLockAll(a *args) error {
	w, v := a.win(1), a.assertion(0, modeNoCheck)
	if a.err != nil {
		return a.err
	}
	if v&modeNoCheck != 0 {
		return w.bytes.LockAllNoCheck()
	}
	return w.LockAll()
}

// perWin is the handler of a function of a window alone, perRank of a rank and a window.
func perWin(do func(*win) error) handler {
	return func(p *Process, a *args) error {
		w := a.win(0)
		if a.err != nil {
			return a.err
		}
		return do(w)
	}
}

// perGroup is the handler of a function of a group, an assertion and a window.
func perGroup(do func(*win, *mpi.Group) error) handler {
	return func(p *Process, a *args) error {
		w, g := a.win(2), a.group(0)
		a.assertion(1, modeNoCheck|modeNoStore|modeNoPut)
		if a.err != nil {
			return a.err
		}
		return do(w, g)
	}
}

func perRank(do func(*win, int) error) handler {
	return func(p *Process, a *args) error {
		w, rank := a.win(1), a.int(0)
		if a.err != nil || rank == procNull {
			return a.err
		}
		return do(w, rank)
	}
}
