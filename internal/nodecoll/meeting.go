package nodecoll

import "github.com/muster-mpi/muster/internal/shmem"

// Meeting holds the memory that ranks in one process show each other.
type Meeting struct {
	Memory [][]byte // by rank
	Common []byte   // initially zero
	left   int
}

// MeetingKey identifies a meeting by a number that its ranks have agreed on, and by the
// first of them, since other ranks may have agreed on the same number.
type MeetingKey struct {
	Number uint32
	First  int
}

// Meet shows memory to the other ranks of a meeting. The result is complete when all ranks
// have called Meet, which the caller must find out; then each calls Part once.
func (h *Host) Meet(key MeetingKey, rank, size, common int, mem []byte) *Meeting {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.meetings == nil {
		h.meetings = make(map[MeetingKey]*Meeting)
	}
	m := h.meetings[key]
	if m == nil {
		m = &Meeting{Memory: make([][]byte, size), Common: shmem.AlignedBytes(common), left: size}
		h.meetings[key] = m
	}
	m.Memory[rank] = mem
	return m
}

// Part ends a rank's part in a meeting.
func (h *Host) Part(key MeetingKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.meetings[key]; m != nil {
		if m.left--; m.left == 0 {
			delete(h.meetings, key)
		}
	}
}
