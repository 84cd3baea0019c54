package program

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/muster-mpi/muster/mpi"
)

// window makes a window and runs a few epochs on it. Element 0 of each rank is a counter, 1
// a sum; a section of each origin follows.
func (r *run) window(random *rand.Rand, g *group) error {
	own := rand.New(rand.NewPCG(random.Uint64(), uint64(r.key(g))))
	c, n := g.comm, g.comm.Size()
	section := 1 + min(size(own, r.cfg.Largest)/8, 20_000)
	r.at = "AllocateWin on " + c.Name()
	var w *mpi.Win[int64]
	var err error
	if length := 2 + n*section; own.IntN(2) == 0 {
		w, err = mpi.AllocateWin[int64](c, length)
	} else {
		w, err = mpi.CreateWin(c, make([]int64, length))
	}
	if err != nil {
		return err
	}
	e := &epochs{run: r, g: g, w: w, section: section, key: r.key(g)}
	if err := e.all(own); err != nil {
		return err
	}
	if r.cfg.Survive {
		r.windows = append(r.windows, w) // see freeWindows
		return nil
	}
	r.at = "Win.Free on " + c.Name()
	return w.Free()
}

type epochs struct {
	run          *run
	g            *group
	w            *mpi.Win[int64]
	section, key int
	counted, sum int64 // what elements 0 and 1 of every rank must be
}

func (e *epochs) all(own *rand.Rand) error {
	for i := range 1 + own.IntN(4) {
		kind := own.IntN(4)
		e.run.at = fmt.Sprintf("window on %s, epoch kind %d", e.g.comm.Name(), kind)
		part := 1 + own.IntN(e.section)
		distance := own.IntN(e.g.comm.Size())
		key := int(mix(e.key, i) >> 1)
		var err error
		switch kind {
		case 0:
			err = e.fence(key, part, distance)
		case 1:
			err = e.locks(key, part, distance)
		case 2:
			err = e.lockAll(key, part)
		default:
			err = e.postStart(key, part, distance)
		}
		if err != nil {
			return err
		}
		if err := e.totals(); err != nil {
			return err
		}
	}
	return nil
}

func (e *epochs) at(origin int) int { return 2 + origin*e.section }

// totals compares elements 0 and 1 of all ranks when all have made their accesses.
func (e *epochs) totals() error {
	c, me := e.g.comm, e.g.comm.Rank()
	if err := c.Barrier(); err != nil {
		return err
	}
	if err := e.w.Lock(me, mpi.LockShared); err != nil {
		return err
	}
	got := make([]int64, 2)
	if err := e.w.Get(got, me, 0); err != nil {
		return err
	}
	if err := e.w.Unlock(me); err != nil {
		return err
	}
	if want := []int64{e.counted, e.sum}; !slices.Equal(got, want) {
		return wrong("%s: counter and sum are %d, want %d", e.run.at, got, want)
	}
	return c.Barrier()
}

// fence puts a part to the rank at a distance, adds to the sum of all, and reads the part
// of another rank in the next epoch.
func (e *epochs) fence(key, part, distance int) error {
	n, me := e.g.comm.Size(), e.g.comm.Rank()
	target := (me + distance) % n
	if err := e.w.Fence(); err != nil {
		return err
	}
	if err := e.w.Put(integers(key, me, part), target, e.at(me)); err != nil {
		return err
	}
	for t := range n {
		if err := e.w.Accumulate([]int64{int64(me + 1)}, t, 1, mpi.Sum); err != nil {
			return err
		}
	}
	e.sum += int64(n * (n + 1) / 2)
	if err := e.w.Fence(); err != nil {
		return err
	}
	// Rank o has put to (o+distance)%n.
	origin := (target + 1) % n
	got := make([]int64, part)
	if err := e.w.Get(got, (origin+distance)%n, e.at(origin)); err != nil {
		return err
	}
	if err := e.w.FenceEnd(); err != nil {
		return err
	}
	return checkIntegers(got, func(i int) int64 { return integer(key, origin, i) }, "get after fence")
}

// locks counts with exclusive locks and reads back what was put under a lock.
func (e *epochs) locks(key, part, distance int) error {
	n, me := e.g.comm.Size(), e.g.comm.Rank()
	target := (me + distance) % n
	const rounds = 3
	for range rounds {
		if err := e.w.Lock(target, mpi.LockExclusive); err != nil {
			return err
		}
		got, old := make([]int64, part), int64(0)
		if err := e.w.Put(integers(key, me, part), target, e.at(me)); err != nil {
			return err
		}
		if err := e.w.FetchAndOp(1, &old, target, 0, mpi.Sum); err != nil {
			return err
		}
		if err := e.w.Flush(target); err != nil {
			return err
		}
		if err := e.w.Get(got, target, e.at(me)); err != nil {
			return err
		}
		if err := e.w.Unlock(target); err != nil {
			return err
		}
		if err := checkIntegers(got, func(i int) int64 { return integer(key, me, i) }, "get under lock"); err != nil {
			return err
		}
		if old < e.counted || old >= e.counted+rounds {
			return wrong("the counter was %d, want %d to %d", old, e.counted, e.counted+rounds-1)
		}
	}
	e.counted += rounds
	return nil
}

// lockAll adds to all ranks with requests under a shared lock.
func (e *epochs) lockAll(key, part int) error {
	n, me := e.g.comm.Size(), e.g.comm.Rank()
	if err := e.w.LockAll(); err != nil {
		return err
	}
	var requests []mpi.Request
	for t := range n {
		q := e.w.RPut(integers(key, me, part), t, e.at(me))
		requests, e.run.pending = append(requests, q), append(e.run.pending, q)
		if err := e.w.Accumulate([]int64{int64(me), 1}, t, 0, mpi.Sum); err != nil {
			return err
		}
	}
	if err := mpi.WaitAll(requests...); err != nil {
		return err
	}
	e.counted += int64(n * (n - 1) / 2)
	e.sum += int64(n)
	if err := e.w.FlushAll(); err != nil {
		return err
	}
	got := make([]int64, part)
	if err := e.w.Get(got, (me+1)%n, e.at(me)); err != nil {
		return err
	}
	if err := e.w.UnlockAll(); err != nil {
		return err
	}
	return checkIntegers(got, func(i int) int64 { return integer(key, me, i) }, "get under lock of all")
}

// postStart puts to one rank, which has posted its window to its origin only.
func (e *epochs) postStart(key, part, distance int) error {
	n, me := e.g.comm.Size(), e.g.comm.Rank()
	target, origin := (me+distance)%n, (me-distance+n)%n
	all := e.g.comm.Group()
	origins, err := all.Include(origin)
	if err != nil {
		return err
	}
	targets, err := all.Include(target)
	if err != nil {
		return err
	}
	if err := e.w.Post(origins); err != nil {
		return err
	}
	if err := e.w.Start(targets); err != nil {
		return err
	}
	if err := e.w.Put(integers(key, me, part), target, e.at(me)); err != nil {
		return err
	}
	if err := e.w.Complete(); err != nil {
		return err
	}
	if err := e.w.Wait(); err != nil {
		return err
	}
	got := e.w.Memory()[e.at(origin):][:part]
	return checkIntegers(got, func(i int) int64 { return integer(key, origin, i) }, "put between start and complete")
}
