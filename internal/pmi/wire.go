package pmi

// The PMI-1 wire format, in both directions. A message is one line of key=value fields
// separated by single spaces; the first field is cmd. Values contain no space and no
// newline, so binary data is encoded in base64 and split into pieces, because servers
// reject long values.
//
// MPICH's description of the protocol, version 1.1, allows free text as the last field
// ("msg=no such key"): words without '=' belong to the previous field.

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type field struct{ key, value string }

// message is a parsed line. Real messages have at most six fields, and searching a slice
// is faster than building a map.
type message struct {
	cmd    string
	fields []field
}

// maxLine limits the length of a line. Servers send less than 2 KB; without a limit a
// wrong descriptor could fill the memory.
const maxLine = 64 << 10

var errNoCmd = errors.New("the line does not begin with cmd=")

// parseMessage parses a line, with or without its newline.
func parseMessage(line string) (message, error) {
	line = strings.TrimRight(line, "\r\n")
	if strings.ContainsAny(line, "\n\r\x00") {
		return message{}, errors.New("the line contains a control character")
	}
	var m message
	for word := range strings.SplitSeq(line, " ") {
		if word == "" {
			continue
		}
		key, value, ok := strings.Cut(word, "=")
		switch {
		case m.cmd == "":
			// mcmd starts a message of several lines (spawn).
			if !ok || value == "" || (key != "cmd" && key != "mcmd") {
				return message{}, errNoCmd
			}
			m.cmd = value
		case ok && key != "":
			m.fields = append(m.fields, field{key, value})
		case len(m.fields) > 0:
			m.fields[len(m.fields)-1].value += " " + word
		default:
			return message{}, fmt.Errorf("%q is not of the form key=value", word)
		}
	}
	if m.cmd == "" {
		return message{}, errNoCmd
	}
	return m, nil
}

// get returns the value of a field, or "".
func (m *message) get(key string) string {
	for _, f := range m.fields {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// number returns the value of a field as a number, or missing if there is none.
func (m *message) number(key string, missing int) int {
	n, err := strconv.Atoi(m.get(key))
	if err != nil {
		return missing
	}
	return n
}

// appendMessage appends a line to dst. fields alternates keys and values, which must not
// contain spaces.
func appendMessage(dst []byte, cmd string, fields ...string) []byte {
	n := len("cmd=\n") + len(cmd)
	for i := range len(fields) &^ 1 {
		n += len(fields[i]) + 1 // and a space or an equals sign
	}
	dst = slices.Grow(dst, n) // at once: the launcher of a large job writes many lines
	dst = append(append(dst, "cmd="...), cmd...)
	for i := 0; i+1 < len(fields); i += 2 {
		dst = append(dst, ' ')
		dst = append(dst, fields[i]...)
		dst = append(dst, '=')
		dst = append(dst, fields[i+1]...)
	}
	return append(dst, '\n')
}

// pieceBytes is the number of value bytes in one put. 512 bytes become 683 characters, so
// a whole line fits the buffers of 1024 characters in MPICH's clients and servers.
const pieceBytes = 512

// maxPieces limits a value to 512 KB, because the piece number must fit in the key.
const maxPieces = 1024

var valueCode = base64.RawURLEncoding

// encodeValue splits a value into pieces. The first one includes their number.
func encodeValue(val []byte) ([]string, error) {
	n := max(1, (len(val)+pieceBytes-1)/pieceBytes)
	if n > maxPieces {
		return nil, fmt.Errorf("pmi: value of %d bytes is too long; the maximum is %d", len(val), maxPieces*pieceBytes)
	}
	pieces := make([]string, n)
	for i := range pieces {
		part := val[i*pieceBytes : min(len(val), (i+1)*pieceBytes)]
		pieces[i] = valueCode.EncodeToString(part)
	}
	pieces[0] = strconv.Itoa(n) + ":" + pieces[0]
	return pieces, nil
}

// decodeFirst decodes the first piece: its bytes and the number of pieces.
func decodeFirst(piece string) (val []byte, pieces int, err error) {
	count, rest, ok := strings.Cut(piece, ":")
	n, numErr := strconv.Atoi(count)
	if !ok || numErr != nil || n < 1 || n > maxPieces {
		return nil, 0, fmt.Errorf("%.40q was not written by Muster", piece)
	}
	val, err = valueCode.DecodeString(rest)
	return val, n, err
}

// pieceKey returns the key of a piece in the flat key space of PMI-1.
func pieceKey(key string, rank, piece int) string {
	s := key + "-" + strconv.Itoa(rank)
	if piece > 0 {
		s += "." + strconv.Itoa(piece)
	}
	return s
}

// keyRank returns the rank at the end of a key of pieceKey, -1 if there is none. Other
// libraries may use such keys for any purpose.
func keyRank(key string) int {
	i := strings.LastIndexByte(key, '-')
	digits, _, _ := strings.Cut(key[i+1:], ".")
	if rank, err := strconv.Atoi(digits); i >= 0 && err == nil && digits[0] != '+' {
		return rank
	}
	return -1
}
