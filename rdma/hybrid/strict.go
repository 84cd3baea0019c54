package hybrid

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Strict mode: both devices below require registered local memory, each with its own key.
// The user sees one key, the number of a row with both. The device registers its own
// buffers when they are allocated: the copies of inline bodies serve as the pool of
// registered buffers that a library keeps for memory it does not register.

// locals holds the local keys of regions. Row 0 is for memory without a key.
type locals struct {
	rows [][paths]uint32
	free []uint32
}

func (l *locals) add(keys [paths]uint32) uint32 {
	if n := len(l.free); n > 0 {
		i := l.free[n-1]
		l.free = l.free[:n-1]
		l.rows[i] = keys
		return i
	}
	if len(l.rows) == 0 {
		l.rows = append(l.rows, [paths]uint32{})
	}
	l.rows = append(l.rows, keys)
	return uint32(len(l.rows) - 1)
}

func (l *locals) remove(i uint32) {
	if i > 0 && int(i) < len(l.rows) && l.rows[i] != [paths]uint32{} {
		l.rows[i] = [paths]uint32{}
		l.free = append(l.free, i)
	}
}

// key returns the key of a region for the device of a path.
func (l *locals) key(i uint32, p path) uint32 {
	if int(i) < len(l.rows) {
		return l.rows[i][p]
	}
	return 0
}

// own registers memory of this device with those below, in strict mode, until they are
// closed.
func (d *Device) own(mem []byte) (keys [paths]uint32, err error) {
	if !d.attr.LocalKeys {
		return keys, nil
	}
	mr, err := d.rd.Register(mem, 0)
	if err != nil {
		return keys, fmt.Errorf("hybrid: register %d bytes of the device's own buffers: %w", len(mem), err)
	}
	keys[byDatagram] = mr.LKey
	if d.rc != nil {
		if mr, err = d.rc.Register(mem, 0); err != nil {
			return keys, fmt.Errorf("hybrid: register %d bytes of the device's own buffers: %w", len(mem), err)
		}
		keys[byConnection] = mr.LKey
	}
	return keys, nil
}

// keyed reports whether a request has a local key that must be changed.
func (d *Device) keyed(wr *rdma.SendWR) bool {
	return d.attr.LocalKeys && d.rc != nil && wr.LKey != 0
}
