package nodecoll

// Regions: memory that the ranks of a node share for the schedules of a communicator that
// has other nodes too. Like a team it is formed by all of them or by none.

import (
	"errors"
	"fmt"
	"strings"
)

// Region is memory shared by ranks of a node.
type Region struct {
	Bytes   []byte
	release func() error
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
// Rank, Size, Exchange, Host and NoMemfd. All ranks call it. The error is Unavailable, the
// same on all ranks, if they can continue without a region.
func FormRegion(cfg Config, size int) (*Region, error) {
	r, hide, why := &Region{}, func() {}, ""
	buf := make([]byte, messageBytes)
	if cfg.Rank == 0 {
		address := ""
		if r, hide, address, why = createRegion(&cfg, size); why != "" {
			address = ""
		}
		defer func() { hide() }()
		for q := 1; q < cfg.Size; q++ {
			if err := cfg.Exchange.Send(q, []byte(address)); err != nil {
				return nil, errors.Join(err, r.Close())
			}
		}
		who := 0
		for q := 1; q < cfg.Size; q++ {
			n, err := cfg.Exchange.Recv(q, buf)
			if err != nil {
				return nil, errors.Join(err, r.Close())
			}
			if n > 0 && why == "" {
				who, why = q, string(buf[:n])
			}
		}
		if why != "" {
			why = fmt.Sprintf("%d %s", who, why)
		}
		for q := 1; q < cfg.Size; q++ {
			if err := cfg.Exchange.Send(q, clipped(why)); err != nil {
				return nil, errors.Join(err, r.Close())
			}
		}
	} else {
		n, err := cfg.Exchange.Recv(0, buf)
		if err != nil {
			return nil, err
		}
		r, why = attachRegion(&cfg, string(buf[:n]), size)
		if err := cfg.Exchange.Send(0, clipped(why)); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		if n, err = cfg.Exchange.Recv(0, buf); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		why = string(buf[:n])
	}
	if why != "" {
		u := &Unavailable{}
		rank, text, _ := strings.Cut(why, " ")
		fmt.Sscan(rank, &u.Rank)
		u.Why = text
		return nil, errors.Join(u, r.Close())
	}
	return r, nil
}

// clipped returns a reason that fits into a message.
func clipped(why string) []byte { return []byte(why)[:min(len(why), messageBytes-8)] }

func createRegion(cfg *Config, size int) (r *Region, hide func(), address, why string) {
	if cfg.Host != nil {
		mem := alignedBytes(size)
		address, hide = cfg.Host.show(mem)
		return &Region{Bytes: mem}, hide, address, ""
	}
	m, err := ShareMemory(MemoryHead+size, cfg.NoMemfd)
	if err != nil {
		return &Region{}, func() {}, "", err.Error()
	}
	return &Region{m.Bytes[MemoryHead:], m.Close}, m.Hide, m.Address, ""
}

func attachRegion(cfg *Config, address string, size int) (r *Region, why string) {
	if address == "" {
		return &Region{}, "there is no memory to map"
	}
	if cfg.Host != nil {
		mem, err := cfg.Host.find(address)
		if err != nil {
			return &Region{}, err.Error()
		}
		return &Region{Bytes: mem}, ""
	}
	m, err := FindMemory(address, MemoryHead+size)
	if err != nil {
		return &Region{}, err.Error()
	}
	return &Region{m.Bytes[MemoryHead:], m.Close}, ""
}
