package mpi

// Restore: the ranks tell each other what they keep, and compute from it, each for itself, which
// checkpoint to restore and who gets which part (checkpoint_plan.go).

import (
	"cmp"

	"github.com/muster-mpi/muster/internal/engine"
)

// Restore returns the last checkpoint that all ranks have stored, and its version; 0 if there
// is none. It is collective, on a communicator that has lost ranks since (of [Comm.Shrink] or in [Recover]) or not.
//
// If c has as many ranks as the communicator of [Checkpoint], each rank gets the part of the
// rank with its number; a process that has replaced a failed rank gets the part of that one, from its buddy. The
// parts are then stored again, so that the next failure may be that of any rank.
//
// If c has fewer ranks, each rank gets its own part first, and the buddies of the lost ranks get
// theirs: together the ranks have every part once, and distribute them as the program needs. Call
// Checkpoint after that: the parts of lost ranks have no copy until then.
//
// If a rank and its buddy have both failed, the error is of the class [ErrOther] on all ranks, and names the ranks
// whose parts are lost.
func Restore[T Elem](c *Comm) (version int, parts []Part[T], err error) {
	const op = "Restore"
	if err := admit[T](&c.w.types); err != nil {
		return 0, nil, c.refuse(ErrType, op, "%w", err)
	}
	k := &c.w.base().checkpoints
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := k.communicator(c, op); err != nil {
		return 0, nil, err
	}
	found, size, key, err := k.restore()
	if err := k.revokeIfFailed(err); err != nil {
		return 0, nil, err
	}
	for _, p := range found {
		data, err := unpack[T](p.data)
		if err != nil {
			return 0, nil, c.refuse(ErrType, op, "%w", err)
		}
		parts = append(parts, Part[T]{Rank: p.rank, Size: size, Data: data})
	}
	return int(key.version), parts, nil
}

// restore returns the parts of this rank in the checkpoint to restore.
func (k *checkpoints) restore() (parts []savedPart, size int, key setKey, err error) {
	c := k.over
	holdings, err := AllgatherValue(c, k.holdings())
	if err != nil {
		return nil, 0, key, err
	}
	plan, err := planRestore(holdings)
	if err != nil || plan == nil {
		if err != nil {
			err = c.refuse(ErrOther, "Restore", "%w", err)
		}
		return nil, 0, key, err
	}
	key = plan.key
	kept := k.find(key)
	var reqs []Request
	for _, m := range plan.moves {
		if m.to == c.rank {
			p := savedPart{rank: m.part}
			if m.from == c.rank {
				p.data = kept.part(m.part)
			} else {
				p.data = make([]byte, m.length)
				reqs = append(reqs, Irecv(c, p.data, m.from, engine.CheckpointTag))
			}
			parts = append(parts, p)
		} else if m.from == c.rank {
			reqs = append(reqs, Isend(c, kept.part(m.part), m.to, engine.CheckpointTag))
		}
	}
	if err := WaitAll(reqs...); err != nil {
		return nil, 0, key, err
	}
	if plan.storeAgain {
		if err := k.store(key.version, parts[0].data); err != nil {
			return nil, 0, key, err
		}
		key.ctx = c.setContext()
	}
	return parts, plan.size, key, nil
}

// holding is what a rank keeps of one checkpoint, as it tells the others.
type holding struct {
	Version  uint64
	Ctx      uint64
	Size     int
	Complete bool
	Ranks    []int  // whose parts
	Own      []bool // of each, whether the rank has saved it itself
	Lengths  []int  // in bytes
}

// holdings returns what this rank keeps.
func (k *checkpoints) holdings() (all []holding) {
	for _, s := range k.kept {
		h := holding{Version: s.version, Ctx: s.ctx, Size: s.size, Complete: s.complete}
		for _, p := range s.parts {
			h.Ranks, h.Own, h.Lengths = append(h.Ranks, p.rank), append(h.Own, p.own), append(h.Lengths, len(p.data))
		}
		all = append(all, h)
	}
	return all
}

// find returns what this rank keeps of a checkpoint, or nil.
func (k *checkpoints) find(key setKey) *savedSet {
	for _, s := range k.kept {
		if s.setKey == key {
			return s
		}
	}
	return nil
}

// part returns the part of a rank, which the set has.
func (s *savedSet) part(rank int) []byte {
	for _, p := range s.parts {
		if p.rank == rank {
			return p.data
		}
	}
	return nil
}

// after orders checkpoints: by version, and of one version by context, which is arbitrary and the
// same on all ranks.
func (k setKey) after(o setKey) bool {
	return cmp.Or(cmp.Compare(k.version, o.version), cmp.Compare(k.ctx, o.ctx)) > 0
}
