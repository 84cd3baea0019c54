package netprobe

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
)

// What hosts exchange: cards through the launcher, and hellos over the interfaces. A hello
// and its answer are authenticated with the job's key and identify both hosts by random
// numbers. An interface that each host has with the same address, such as Docker's bridge,
// leads to the host itself, which is not the one that was probed.

type hostID [16]byte

// Card is what a host needs to know about another to probe it.
type Card struct {
	Host       string // its name, for people
	ID         string
	Interfaces []CardEntry
}

// CardEntry is an interface of a Card.
type CardEntry struct {
	Name    string
	Network string
	At      netip.AddrPort
	Kind    Kind
}

func parseCard(text []byte) (c Card, id hostID, err error) {
	if err = json.Unmarshal(text, &c); err != nil {
		return c, id, fmt.Errorf("netprobe: the card of a host is not readable: %w", err)
	}
	raw, err := hex.DecodeString(c.ID)
	if err != nil || len(raw) != len(id) {
		return c, id, fmt.Errorf("netprobe: the card of %s names it %q, which is no number of 16 bytes; do all hosts run the same version?", c.Host, c.ID)
	}
	return c, hostID(raw), nil
}

// hello is a probe or the answer to one.
type hello struct {
	answer   bool
	mine     byte // index of the sender's interface
	theirs   byte // and of the receiver's
	from, to hostID
	when     uint64 // the prober's clock; an answer returns it
}

const (
	helloMagic = "MRP1"
	helloLen   = len(helloMagic) + 1 + 2 + 2*16 + 8
	sealedLen  = helloLen + sha256.Size
)

// proofKey separates this use of the job's key from others.
func proofKey(key []byte) []byte { return sum(key, []byte("muster proof of rails")) }

func sum(key, b []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(b)
	return mac.Sum(nil)
}

// seal returns the authenticated datagram.
func (h *hello) seal(key []byte) []byte {
	kind := byte(1)
	if h.answer {
		kind = 2
	}
	b := append(make([]byte, 0, sealedLen), helloMagic...)
	b = append(b, kind, h.mine, h.theirs)
	b = append(append(b, h.from[:]...), h.to[:]...)
	b = binary.LittleEndian.AppendUint64(b, h.when)
	return append(b, sum(key, b)...)
}

// unseal reads a datagram, and reports whether it is a hello made with the key.
func unseal(b, key []byte) (h hello, ok bool) {
	if len(b) != sealedLen || !bytes.HasPrefix(b, []byte(helloMagic)) || !hmac.Equal(sum(key, b[:helloLen]), b[helloLen:]) {
		return h, false
	}
	h = hello{answer: b[4] == 2, mine: b[5], theirs: b[6], from: hostID(b[7:23]), to: hostID(b[23:39]), when: binary.LittleEndian.Uint64(b[39:])}
	return h, b[4] == 1 || b[4] == 2
}
