package ft

import (
	"encoding/binary"
	"math"
)

// Messages on the wire: a byte with the kind, then varints. A set of ranks is the number
// of its runs of consecutive ranks, and for each run the distance from the end of the
// previous one and its length: a lost host is one run.

// MaxMessage is the length of the longest message about n ranks: two values whose failed
// ranks are every second one.
func MaxMessage(n int) int { return 64 + 2*binary.MaxVarintLen32*n }

// Append encodes a message.
func (m *Message) Append(b []byte) []byte {
	b = append(b, byte(m.Kind))
	b = binary.AppendUvarint(b, uint64(m.Agreement))
	b = binary.AppendUvarint(b, uint64(m.Ballot))
	b = m.Value.append(b)
	b = binary.AppendUvarint(b, uint64(m.Held+1))
	if m.Held >= 0 {
		b = m.HeldValue.append(b)
	}
	return b
}

func (v *Value) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, v.Flag)
	b = binary.AppendUvarint(b, v.Number)
	b = append(b, v.Slots)
	return v.Failed.append(b)
}

func (s Set) append(b []byte) []byte {
	runs := 0
	for i := range s {
		if i == 0 || s[i] != s[i-1]+1 {
			runs++
		}
	}
	b = binary.AppendUvarint(b, uint64(runs))
	end := int32(0)
	for i := 0; i < len(s); {
		j := i + 1
		for j < len(s) && s[j] == s[j-1]+1 {
			j++
		}
		b = binary.AppendUvarint(b, uint64(s[i]-end))
		b = binary.AppendUvarint(b, uint64(j-i))
		end, i = s[j-1]+1, j
	}
	return b
}

// Parse decodes a message about n ranks.
func Parse(b []byte, n int) (m Message, ok bool) {
	r := reader{b: b, ok: true}
	m.Kind = Kind(r.byte())
	m.Agreement = uint32(r.uint(math.MaxUint32))
	m.Ballot = int32(r.uint(uint64(n) - 1))
	m.Value = r.value(n)
	m.Held = int32(r.uint(uint64(n))) - 1
	if m.Held >= 0 {
		m.HeldValue = r.value(n)
	}
	return m, r.ok && len(r.b) == 0 && m.Kind >= Report && m.Kind <= Decide
}

type reader struct {
	b  []byte
	ok bool
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.ok = false
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uint(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.ok, r.b = false, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) value(n int) (v Value) {
	if len(r.b) < 8 {
		r.ok, r.b = false, nil
		return v
	}
	v.Flag = binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	v.Number = r.uint(math.MaxUint64)
	v.Slots = r.byte()
	v.Failed = r.set(n)
	return v
}

func (r *reader) set(n int) (s Set) {
	end := 0
	for range r.uint(uint64(n)) {
		start := end + int(r.uint(uint64(n-end)))
		count := int(r.uint(uint64(n - start)))
		if !r.ok || count == 0 {
			r.ok = false
			return nil
		}
		for i := range count {
			s = append(s, int32(start+i))
		}
		end = start + count
	}
	return s
}
