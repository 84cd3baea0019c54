package nodecoll

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/shmem"
)

// Config configures a team.
type Config struct {
	Rank, Size int
	Driver     Driver
	Exchange   Exchange
	// Host connects ranks that are goroutines of this process; nil: they are processes.
	Host *Host
	// Oversubscribed reports that ranks share cores. The value of rank 0 counts.
	Oversubscribed bool
	// History records the calls.
	History *History
	// NoMemfd makes the memory a file in Dir, for ranks that share a file system but
	// cannot open each other's descriptors.
	NoMemfd bool
	Dir     string // default /dev/shm
}

// registerLimit is how long a rank waits for its registration before the team uses fences.
// The shared-memory device has usually made it.
const registerLimit = 200 * time.Millisecond

// Form creates a team. All ranks call it. The error is Unavailable, the same on all ranks,
// if they can continue without a team, and another one if they cannot communicate.
func Form(cfg Config) (*Team, error) {
	r, decision, err := form(&cfg, segmentBytes(cfg.Size), regionUse{
		format: func(r *Region) { layOut(r.Bytes, cfg.Size).head.format(cfg.Size) },
		check:  func(r *Region) error { return layOut(r.Bytes, cfg.Size).head.check(cfg.Size) },
		ability: func() byte {
			if cfg.Host == nil && shmem.Within(registerLimit, shmem.RegisterGlobal) {
				return canPlain
			}
			return canFence
		},
	})
	if err != nil {
		return nil, err
	}
	if cfg.History == nil {
		cfg.History = new(History)
	}
	seg := layOut(r.Bytes, cfg.Size)
	t := &Team{rank: cfg.Rank, size: cfg.Size, seg: seg, mine: &seg.sections[cfg.Rank],
		driver: cfg.Driver, past: cfg.History, fenced: decision[0] == canFence, burst: firstLooks, close: r.Close}
	if len(decision) > 1 && decision[1] == shareCores {
		t.oversubscribed, t.burst = true, 1
	}
	return t, nil
}

func (h *header) format(size int) {
	h.size.Publish(uint64(size))
	h.magic.Publish(segmentMagic)
}

func (h *header) check(size int) error {
	if h.magic.Load() != segmentMagic || h.size.Load() != uint64(size) {
		return fmt.Errorf("the address from rank 0 is not that of a segment for collectives of %d ranks; run all ranks from the same build and on one host", size)
	}
	return nil
}
