package hybrid

import "github.com/muster-mpi/muster/rdma"

// Keys. A region is registered with both devices, each of which returns a tag of 32 bits,
// and its key combines the two, mixed. The sender extracts from the key the tag for the
// device that carries the access. Mixing makes every bit of the key significant for either
// device: a key that is wrong by one bit contains two invalid tags.

// The factors of the mixing, and their inverses modulo 2^64.
const (
	stir1, back1 = 0xFF51AFD7ED558CCD, 0x4F74430C22A54005
	stir2, back2 = 0xC4CEB9FE1A85EC53, 0x9CB4B2F8129337DB
)

// joinKey combines the tags for datagrams and for a connection into one key.
func joinKey(tags [paths]uint32) uint64 {
	k := uint64(tags[byDatagram]) | uint64(tags[byConnection])<<32
	k = (k ^ k>>33) * stir1
	k = (k ^ k>>33) * stir2
	return k ^ k>>33
}

// splitKey returns the tags of a key.
func splitKey(k uint64) (tags [paths]uint32) {
	k = (k ^ k>>33) * back2
	k = (k ^ k>>33) * back1
	k ^= k >> 33
	return [paths]uint32{byDatagram: uint32(k), byConnection: uint32(k >> 32)}
}

// Register makes memory accessible to peers, over either device.
func (d *Device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	mr, err := d.rd.Register(mem, acc)
	if err != nil || d.rc == nil {
		return mr, err
	}
	other, err := d.rc.Register(mem, acc)
	if err != nil {
		_ = d.rd.Deregister(mr) // it was registered a moment ago
		return rdma.MR{}, err
	}
	mr.RKey = joinKey([paths]uint32{byDatagram: uint32(mr.RKey), byConnection: uint32(other.RKey)})
	if keys := [paths]uint32{mr.LKey, other.LKey}; d.attr.LocalKeys {
		mr.LKey = d.locals.add(keys)
	} else {
		mr.LKey = 0
	}
	return mr, nil
}

// Deregister ends a registration.
func (d *Device) Deregister(mr rdma.MR) error {
	if d.rc == nil {
		return d.rd.Deregister(mr)
	}
	tags, local := splitKey(mr.RKey), mr.LKey
	mr.RKey, mr.LKey = uint64(tags[byDatagram]), tags[byDatagram]
	err := d.rd.Deregister(mr)
	mr.RKey, mr.LKey = uint64(tags[byConnection]), tags[byConnection]
	if other := d.rc.Deregister(mr); err == nil {
		err = other
	}
	if err == nil && d.attr.LocalKeys {
		d.locals.remove(local)
	}
	return err
}
