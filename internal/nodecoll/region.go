package nodecoll

// Regions: memory that ranks of a node share. Rank 0 creates it and sends its address to the
// others; each maps it and answers; rank 0 sends everyone the decision whether all could. So
// either all ranks have the region or none has, and none waits in vain.

import (
	"errors"
	"fmt"
	"strings"

	"github.com/muster-mpi/muster/internal/shmem"
)

// Exchange carries the messages that form a region or a team between its ranks.
type Exchange interface {
	Send(to int, b []byte) error
	// Recv returns the length of the message, which is at most that of b.
	Recv(from int, b []byte) (int, error)
}

// Unavailable reports why the ranks have no region, and which rank prevents it.
type Unavailable struct {
	Rank int
	Why  string
}

func (u *Unavailable) Error() string { return fmt.Sprintf("rank %d: %s", u.Rank, u.Why) }

// The first byte of a message.
const (
	canFence   = 'f' // mapped; the rank must publish with a fenced store
	canPlain   = 'p' // mapped; the rank is registered for membarrier, a plain store suffices
	cannot     = 'n' // a reason follows
	shareCores = 'c' // follows canFence or canPlain in the decision

	messageBytes = 512
)

// Region is memory shared by ranks of a node.
type Region struct {
	Bytes   []byte
	release func() error // nil if it is on the heap
}

// Close releases the region. The other ranks may still use theirs.
func (r *Region) Close() error {
	r.Bytes = nil
	if r.release == nil {
		return nil
	}
	release := r.release
	r.release = nil
	return release()
}

// FormRegion creates a region of size bytes for the ranks of a Config, of which it uses
// Rank, Size, Exchange, Host, NoMemfd and Dir. All ranks call it. The error is Unavailable,
// the same on all ranks, if they can continue without a region.
func FormRegion(cfg Config, size int) (*Region, error) {
	r, _, err := form(&cfg, size, regionUse{})
	return r, err
}

// regionUse is what the ranks do with a region while they form it.
type regionUse struct {
	format  func(r *Region)       // at rank 0; nil: nothing
	check   func(r *Region) error // at the others
	ability func() byte           // canPlain or canFence; nil: canFence
}

// form creates a region, and returns the decision on how to use it.
func form(cfg *Config, size int, use regionUse) (*Region, []byte, error) {
	if cfg.Dir == "" {
		cfg.Dir = "/dev/shm"
	}
	part := follow
	if cfg.Rank == 0 {
		part = lead
	}
	r, decision, err := part(cfg, size, &use)
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	if decision[0] == cannot {
		u := &Unavailable{}
		rank, why, _ := strings.Cut(string(decision[1:]), " ")
		fmt.Sscan(rank, &u.Rank)
		u.Why = why
		return nil, nil, errors.Join(u, r.Close())
	}
	return r, decision, nil
}

// lead is form for rank 0.
func lead(cfg *Config, size int, use *regionUse) (r *Region, decision []byte, err error) {
	r, address, hide, refusal := createRegion(cfg, size)
	defer hide()
	invitation := []byte{cannot}
	if refusal == nil {
		if use.format != nil {
			use.format(r)
		}
		invitation = append([]byte{canFence}, address...)
	}
	for q := 1; q < cfg.Size; q++ {
		if err := cfg.Exchange.Send(q, invitation); err != nil {
			return r, nil, err
		}
	}
	decision, who := use.answer(refusal), 0
	buf := make([]byte, messageBytes)
	for q := 1; q < cfg.Size; q++ {
		n, err := cfg.Exchange.Recv(q, buf)
		if err != nil {
			return r, nil, err
		}
		if worse(buf[0], decision[0]) {
			decision, who = append(decision[:0], buf[:n]...), q
		}
	}
	if decision[0] == cannot {
		decision = fmt.Appendf([]byte{cannot}, "%d %s", who, decision[1:])
	} else if cfg.Oversubscribed {
		decision = append(decision, shareCores)
	}
	decision = decision[:min(len(decision), messageBytes)]
	for q := 1; q < cfg.Size; q++ {
		if err := cfg.Exchange.Send(q, decision); err != nil {
			return r, nil, err
		}
	}
	return r, decision, nil
}

// follow is form for the other ranks.
func follow(cfg *Config, size int, use *regionUse) (r *Region, decision []byte, err error) {
	r = &Region{}
	buf := make([]byte, messageBytes)
	n, err := cfg.Exchange.Recv(0, buf)
	if err != nil {
		return r, nil, err
	}
	refusal := errors.New("there is no memory to map")
	if buf[0] != cannot {
		r, refusal = attachRegion(cfg, string(buf[1:n]), size)
		if refusal == nil && use.check != nil {
			refusal = use.check(r)
		}
	}
	if err := cfg.Exchange.Send(0, use.answer(refusal)); err != nil {
		return r, nil, err
	}
	n, err = cfg.Exchange.Recv(0, buf)
	return r, buf[:n], err
}

// answer returns a rank's answer.
func (u *regionUse) answer(refusal error) []byte {
	switch {
	case refusal != nil:
		b := append([]byte{cannot}, refusal.Error()...)
		return b[:min(len(b), messageBytes-8)] // the decision adds a rank
	case u.ability == nil:
		return []byte{canFence}
	}
	return []byte{u.ability()}
}

// worse orders the answers: the ranks do what all of them support.
func worse(a, b byte) bool {
	order := func(c byte) int { return strings.IndexByte(string([]byte{canPlain, canFence, cannot}), c) }
	return order(a) > order(b)
}

func createRegion(cfg *Config, size int) (r *Region, address string, hide func(), err error) {
	if cfg.Host != nil {
		mem := shmem.AlignedBytes(size)
		address, hide = cfg.Host.show(mem)
		return &Region{Bytes: mem}, address, hide, nil
	}
	m, err := shmem.Share(size, cfg.Dir, cfg.NoMemfd)
	if err != nil {
		return &Region{}, "", func() {}, err
	}
	return &Region{m.Bytes, m.Close}, m.Address, m.Hide, nil
}

func attachRegion(cfg *Config, address string, size int) (*Region, error) {
	if cfg.Host != nil {
		mem, err := cfg.Host.find(address)
		return &Region{Bytes: mem}, err
	}
	m, err := shmem.Find(address, size)
	if err != nil {
		return &Region{}, err
	}
	return &Region{m.Bytes, m.Close}, nil
}
