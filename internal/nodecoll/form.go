package nodecoll

// Forming a team. Rank 0 creates the segment and sends its address to the others; each
// maps it and answers; rank 0 sends everyone the decision whether all could. So either all
// ranks have the team or none has, and none waits in vain.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/membarrier"
)

// Exchange carries the messages of Form between ranks of the team.
type Exchange interface {
	Send(to int, b []byte) error
	// Recv returns the length of the message, which is at most that of b.
	Recv(from int, b []byte) (int, error)
}

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
	// NoMemfd makes the segment a file in Dir, for ranks that share a file system but
	// cannot open each other's descriptors.
	NoMemfd bool
	Dir     string // default /dev/shm
}

// Unavailable reports why the ranks have no team, and which rank prevents it.
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

// Form creates a team. All ranks call it. The error is Unavailable, the same on all ranks,
// if they can continue without a team, and another one if they cannot communicate.
func Form(cfg Config) (*Team, error) {
	if cfg.Dir == "" {
		cfg.Dir = "/dev/shm"
	}
	if cfg.Rank == 0 {
		return lead(&cfg)
	}
	return follow(&cfg)
}

// lead is Form for rank 0.
func lead(cfg *Config) (*Team, error) {
	made, refusal := create(cfg)
	defer made.forget()
	invitation := []byte{cannot}
	if refusal == nil {
		made.seg.head.format(made.nonce, cfg.Size)
		invitation = append([]byte{canFence}, made.address...)
	}
	for r := 1; r < cfg.Size; r++ {
		if err := cfg.Exchange.Send(r, invitation); err != nil {
			return nil, errors.Join(err, made.release())
		}
	}
	decision, who := ability(cfg, refusal), 0
	buf := make([]byte, messageBytes)
	for r := 1; r < cfg.Size; r++ {
		n, err := cfg.Exchange.Recv(r, buf)
		if err != nil {
			return nil, errors.Join(err, made.release())
		}
		if worse(buf[0], decision[0]) {
			decision, who = append(decision[:0], buf[:n]...), r
		}
	}
	if decision[0] == cannot {
		decision = fmt.Appendf([]byte{cannot}, "%d %s", who, decision[1:])
	} else if cfg.Oversubscribed {
		decision = append(decision, shareCores)
	}
	decision = decision[:min(len(decision), messageBytes)]
	for r := 1; r < cfg.Size; r++ {
		if err := cfg.Exchange.Send(r, decision); err != nil {
			return nil, errors.Join(err, made.release())
		}
	}
	return conclude(cfg, decision, made.mapping)
}

// follow is Form for the other ranks.
func follow(cfg *Config) (*Team, error) {
	buf := make([]byte, messageBytes)
	n, err := cfg.Exchange.Recv(0, buf)
	if err != nil {
		return nil, err
	}
	var seen mapping
	refusal := errors.New("there is no segment to map")
	if buf[0] != cannot {
		seen, refusal = attach(cfg, string(buf[1:n]))
	}
	if err := cfg.Exchange.Send(0, ability(cfg, refusal)); err != nil {
		return nil, errors.Join(err, seen.release())
	}
	n, err = cfg.Exchange.Recv(0, buf)
	if err != nil {
		return nil, errors.Join(err, seen.release())
	}
	return conclude(cfg, buf[:n], seen)
}

// ability returns a rank's answer.
func ability(cfg *Config, refusal error) []byte {
	if refusal != nil {
		b := append([]byte{cannot}, refusal.Error()...)
		return b[:min(len(b), messageBytes-8)] // the decision adds a rank
	}
	if cfg.Host == nil && membarrier.Within(registerLimit, membarrier.RegisterGlobal) {
		return []byte{canPlain}
	}
	return []byte{canFence}
}

// registerLimit is how long a rank waits for its registration before the team uses fences.
// The shared-memory device has usually made it.
const registerLimit = 200 * time.Millisecond

// worse orders the answers: the team does what all ranks support.
func worse(a, b byte) bool {
	order := func(c byte) int { return strings.IndexByte(string([]byte{canPlain, canFence, cannot}), c) }
	return order(a) > order(b)
}

// conclude acts on the decision.
func conclude(cfg *Config, decision []byte, m mapping) (*Team, error) {
	if decision[0] == cannot {
		u := &Unavailable{}
		rank, why, _ := strings.Cut(string(decision[1:]), " ")
		fmt.Sscan(rank, &u.Rank)
		u.Why = why
		return nil, errors.Join(u, m.release())
	}
	if cfg.History == nil {
		cfg.History = new(History)
	}
	t := &Team{rank: cfg.Rank, size: cfg.Size, seg: m.seg, mine: &m.seg.sections[cfg.Rank],
		driver: cfg.Driver, past: cfg.History, fenced: decision[0] == canFence, burst: firstLooks, close: m.release}
	if len(decision) > 1 && decision[1] == shareCores {
		t.oversubscribed, t.burst = true, 1
	}
	return t, nil
}

// mapping is a mapped segment.
type mapping struct {
	seg   segment
	unmap func() error // nil if it is on the heap
}

func (m mapping) release() error {
	if m.unmap == nil {
		return nil
	}
	return m.unmap()
}

// creation is a mapping that other ranks can find by its address until it is forgotten.
type creation struct {
	mapping
	address string
	nonce   uint64
	hide    func()
}

func (c *creation) forget() {
	if c.hide != nil {
		c.hide()
	}
}

// create creates the segment.
func create(cfg *Config) (creation, error) {
	if cfg.Host != nil {
		return cfg.Host.create(cfg.Size), nil
	}
	return createShared(cfg, rand.Uint64())
}

// attach maps the segment that rank 0 has created, and verifies that it is the right one.
func attach(cfg *Config, address string) (mapping, error) {
	var nonce uint64
	var m mapping
	var err error
	if cfg.Host != nil {
		m, nonce, err = cfg.Host.attach(address)
	} else {
		m, nonce, err = attachShared(cfg, address)
	}
	if err != nil {
		return mapping{}, err
	}
	if err := m.seg.head.check(nonce, cfg.Size); err != nil {
		return mapping{}, errors.Join(err, m.release())
	}
	return m, nil
}

func (h *header) format(nonce uint64, size int) {
	h.nonce.publish(nonce)
	h.size.publish(uint64(size))
	h.magic.publish(segmentMagic)
}

func (h *header) check(nonce uint64, size int) error {
	if h.magic.load() != segmentMagic || h.nonce.load() != nonce || h.size.load() != uint64(size) {
		return fmt.Errorf("the address from rank 0 is not that of a segment for collectives of %d ranks; run all ranks from the same build and on one host", size)
	}
	return nil
}
