package nodecoll

// Memory that the ranks of a host share for other purposes than collectives: one of
// them makes it, the others find it by its address.

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// MemoryHead is what Memory needs at its beginning: the rest is the caller's.
const MemoryHead = lineBytes

// Memory is memory that processes of a host share.
type Memory struct {
	Bytes   []byte
	Address string // how the others find it
	hide    func()
	unmap   func() error
}

// ShareMemory makes memory of size bytes, zero behind MemoryHead. noMemfd makes it a
// file in /dev/shm. Hide is called when the others have found it.
func ShareMemory(size int, noMemfd bool) (*Memory, error) {
	nonce := rand.Uint64()
	m, err := shareMemory(size, noMemfd, nonce)
	if err == nil {
		binary.NativeEndian.PutUint64(m.Bytes, nonce)
	}
	return m, err
}

// FindMemory maps memory that another process has made, of at least size bytes.
func FindMemory(address string, size int) (*Memory, error) {
	m, nonce, err := findMemory(address, size)
	if err != nil {
		return nil, err
	}
	if binary.NativeEndian.Uint64(m.Bytes) != nonce {
		m.Close()
		return nil, fmt.Errorf("what lies at %q is other memory than the one that was shared; run all ranks on one host", address)
	}
	return m, nil
}

// Hide keeps others from finding it. Those who have found it keep it.
func (m *Memory) Hide() {
	if m.hide != nil {
		m.hide()
		m.hide = nil
	}
}

// Close gives it back. Nothing may touch Bytes any more.
func (m *Memory) Close() error {
	m.Hide()
	if m.unmap == nil {
		return nil
	}
	unmap := m.unmap
	m.unmap = nil
	return unmap()
}

// Meeting is what ranks that are goroutines of one process show each other.
type Meeting struct {
	Memory [][]byte // by rank
	Common []byte   // zero at first
	left   int
}

// MeetingKey names a meeting: a number that its ranks have agreed on, and the first
// of them, since others may have agreed on the same.
type MeetingKey struct {
	Number uint32
	First  int
}

// Meet shows memory to the other ranks of a meeting. The result is complete when all
// ranks have called it, which the caller must find out; then each calls Part once.
func (h *Host) Meet(key MeetingKey, rank, size, common int, mem []byte) *Meeting {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.meetings == nil {
		h.meetings = make(map[MeetingKey]*Meeting)
	}
	m := h.meetings[key]
	if m == nil {
		m = &Meeting{Memory: make([][]byte, size), Common: alignedBytes(common), left: size}
		h.meetings[key] = m
	}
	m.Memory[rank] = mem
	return m
}

// Part says that a rank has seen what the others have shown.
func (h *Host) Part(key MeetingKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.meetings[key]; m != nil {
		if m.left--; m.left == 0 {
			delete(h.meetings, key)
		}
	}
}
