package longcopy

const (
	// Shortest is the length from which Copy differs from the built-in copy.
	Shortest = 512 << 10
	// pieceBytes is the length of a piece: below that of non-temporal stores. Between pieces
	// the goroutine can be preempted, which it cannot within one copy.
	pieceBytes = 256 << 10
	// stringEnd limits the use of string instructions. They need no read of the destination,
	// which pays where source and destination together are one to two times as long as the
	// level 2 cache. Beyond, they take as long as ordinary stores, and the reader on another
	// core longer.
	stringEnd = 3 << 19
)

// Copy copies like the built-in copy: min(len(to), len(from)) bytes, which may overlap.
func Copy(to, from []byte) int {
	if len(to) < Shortest || len(from) < Shortest {
		return copy(to, from)
	}
	return long(to, from)
}

func long(to, from []byte) int {
	n := min(len(to), len(from))
	to, from = to[:n], from[:n]
	if overlap(to, from) {
		return copy(to, from) // it chooses the direction
	}
	byString := fastStrings && n < stringEnd
	for len(to) > 0 {
		k := min(len(to), pieceBytes)
		if byString {
			moveString(&to[0], &from[0], k)
		} else {
			copy(to[:k], from)
		}
		to, from = to[k:], from[k:]
	}
	return n
}
