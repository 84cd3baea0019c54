package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// The capture file: a header with the byte order and the link type, then frames, each with
// its time and its length.

// ErrNoRights reports that this process may not record on an interface; tests skip then.
var ErrNoRights = errors.New("recording needs Linux and CAP_NET_RAW")

// Frame is one recorded frame, from the Ethernet header on.
type Frame struct {
	At   time.Time
	Data []byte
}

const (
	magicMicro   = 0xa1b2c3d4 // times in microseconds
	magicNano    = 0xa1b23c4d // times in nanoseconds
	linkEthernet = 1
	fileHead     = 24
	frameHead    = 16
	maxFrame     = 256 << 10 // limit of common recorders
)

// Write writes frames as a capture, little-endian and in microseconds.
func Write(w io.Writer, frames []Frame) error {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, magicMicro)
	out = le.AppendUint16(out, 2) // version 2.4
	out = le.AppendUint16(out, 4)
	out = append(out, make([]byte, 8)...) // time zone and accuracy, always zero
	out = le.AppendUint32(out, maxFrame)
	out = le.AppendUint32(out, linkEthernet)
	for _, f := range frames {
		out = le.AppendUint32(out, uint32(f.At.Unix()))
		out = le.AppendUint32(out, uint32(f.At.Nanosecond()/1000))
		out = le.AppendUint32(out, uint32(len(f.Data))) // kept
		out = le.AppendUint32(out, uint32(len(f.Data))) // seen
		out = append(out, f.Data...)
	}
	_, err := w.Write(out)
	return err
}

// Read returns the frames of a capture. It accepts both byte orders and both units of
// time; the link must be Ethernet and no frame truncated.
func Read(r io.Reader) ([]Frame, error) {
	var head [fileHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("capture: no file head: %w", err)
	}
	order, unit, err := readMagic(head[:4])
	if err != nil {
		return nil, err
	}
	if link := order.Uint32(head[20:]); link != linkEthernet {
		return nil, fmt.Errorf("capture: link type %d, only Ethernet (%d) is supported: record on an Ethernet or loopback interface, not on \"any\"", link, linkEthernet)
	}
	var frames []Frame
	for {
		f, err := readFrame(r, order, unit)
		if err == io.EOF {
			return frames, nil
		}
		if err != nil {
			return nil, fmt.Errorf("capture: frame %d: %w", len(frames)+1, err)
		}
		frames = append(frames, f)
	}
}

// readMagic derives the byte order and the unit of time from the first word.
func readMagic(b []byte) (binary.ByteOrder, time.Duration, error) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(b) {
		case magicMicro:
			return order, time.Microsecond, nil
		case magicNano:
			return order, time.Nanosecond, nil
		}
	}
	return nil, 0, fmt.Errorf("capture: starts with % x, which is no pcap file (pcapng is not supported: convert it with editcap -F pcap)", b)
}

// readFrame returns io.EOF only if the file ends at the end of a frame.
func readFrame(r io.Reader, order binary.ByteOrder, unit time.Duration) (Frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	kept, seen := order.Uint32(head[8:]), order.Uint32(head[12:])
	if kept != seen {
		return Frame{}, fmt.Errorf("%d of %d bytes were kept: record with a larger snapshot length", kept, seen)
	}
	if kept > maxFrame {
		return Frame{}, fmt.Errorf("has a length of %d bytes, which is invalid: the file is damaged", kept)
	}
	f := Frame{
		At:   time.Unix(int64(order.Uint32(head[0:])), int64(order.Uint32(head[4:]))*int64(unit)),
		Data: make([]byte, kept),
	}
	_, err := io.ReadFull(r, f.Data)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return f, err
}
