package nodecoll

// Memory that the ranks of a host share for other purposes than collectives: one of them
// creates it, the others find it by its address.

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// MemoryHead is the number of bytes that Memory needs at its beginning; the rest is the
// caller's.
const MemoryHead = lineBytes

// Memory is memory shared by processes of a host.
type Memory struct {
	Bytes   []byte
	Address string // for FindMemory
	hide    func()
	unmap   func() error
}

// ShareMemory creates memory of size bytes, zero behind MemoryHead. noMemfd makes it a file
// in /dev/shm. Call Hide when the other ranks have mapped it.
func ShareMemory(size int, noMemfd bool) (*Memory, error) {
	nonce := rand.Uint64()
	m, err := shareMemory(size, noMemfd, nonce)
	if err == nil {
		binary.NativeEndian.PutUint64(m.Bytes, nonce)
	}
	return m, err
}

// FindMemory maps memory that another process has created, of at least size bytes.
func FindMemory(address string, size int) (*Memory, error) {
	m, nonce, err := findMemory(address, size)
	if err != nil {
		return nil, err
	}
	if binary.NativeEndian.Uint64(m.Bytes) != nonce {
		m.Close()
		return nil, fmt.Errorf("the memory at %q is not the shared memory; run all ranks on one host", address)
	}
	return m, nil
}

// Hide prevents further ranks from finding the memory. Existing mappings stay.
func (m *Memory) Hide() {
	if m.hide != nil {
		m.hide()
		m.hide = nil
	}
}

// Close releases the memory. Bytes must not be used afterwards.
func (m *Memory) Close() error {
	m.Hide()
	if m.unmap == nil {
		return nil
	}
	unmap := m.unmap
	m.unmap = nil
	return unmap()
}

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
		m = &Meeting{Memory: make([][]byte, size), Common: alignedBytes(common), left: size}
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
