package capture

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// tshark dissects a capture and prints the result as XML; a Dissection holds what can be
// counted and compared. No code of ours decodes anything here.
//
// Tests must account for the limits of its dissector. It fails on markers in one direction
// only, on two FPDUs in a segment with markers, and on an FPDU with markers that spans
// segments. It silently skips an FPDU in the same frame as the reply, so a test must
// compare the number of FPDUs. It has no names for the opcodes 8 and 9 of RFC 7306.

// ErrNoTshark reports that tshark is not installed; tests skip then.
var ErrNoTshark = errors.New("tshark is not installed (Debian: apt-get install tshark)")

// Dissection is the result of tshark for a capture.
type Dissection struct {
	Requests, Replies int // MPA startup frames
	FPDUs             int // MPA frames after them
	GoodCRC, BadCRC   int // of those, if the connection uses the checksum
	Markers           int // in both directions
	Headers           []Header
	Datagrams         []Header // of rdma/soft, if its plugin was given

	Malformed []int // numbers of malformed frames
	Undecoded []int // numbers of frames with data that it treated as plain TCP
}

// Header holds the fields of the DDP and RDMAP headers of one segment, or of the header of
// one datagram, by the names of the display filters, such as iwarp_ddp.qn or
// iwarp_rdma.opcode.
type Header map[string]string

// Number returns the value of a field, and whether the field exists and is a number.
func (h Header) Number(field string) (value uint64, ok bool) {
	value, err := strconv.ParseUint(h[field], 0, 64)
	return value, err == nil
}

// Opcodes returns the RDMAP opcodes of all segments, in order; -1 if one has none.
func (v *Dissection) Opcodes() []int {
	var all []int
	for _, h := range v.Headers {
		code, ok := h.Number("iwarp_rdma.opcode")
		if !ok {
			all = append(all, -1)
			continue
		}
		all = append(all, int(code))
	}
	return all
}

// Err reports what is wrong with the traffic as such: frames that are not iWARP, a wrong
// checksum, no startup. The expected contents are up to the test.
func (v *Dissection) Err() error {
	var wrong []string
	if v.Requests == 0 || v.Replies == 0 {
		wrong = append(wrong, fmt.Sprintf("%d MPA requests and %d replies", v.Requests, v.Replies))
	}
	if v.BadCRC > 0 {
		wrong = append(wrong, fmt.Sprintf("%d of %d checksums are wrong", v.BadCRC, v.BadCRC+v.GoodCRC))
	}
	if len(v.Malformed) > 0 {
		wrong = append(wrong, fmt.Sprintf("frames %v are malformed", v.Malformed))
	}
	if len(v.Undecoded) > 0 {
		wrong = append(wrong, fmt.Sprintf("frames %v hold data that is no iWARP", v.Undecoded))
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("tshark: %s", strings.Join(wrong, "; "))
}

// Dissect runs tshark on the capture in a file, with Lua plugins for protocols that it
// does not support. The error is [ErrNoTshark] if there is no tshark.
func Dissect(ctx context.Context, path string, plugins ...string) (*Dissection, error) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		return nil, ErrNoTshark
	}
	args := []string{
		"-r", path, "-n", "-T", "pdml",
		"-2",                                 // two passes, so that it finds data that spans segments
		"-o", "tcp.try_heuristic_first:TRUE", // iWARP has no fixed port
		"--disable-protocol", "rpcordma", // these would claim the payload
		"--disable-protocol", "smb_direct", // of a Send
	}
	for _, plugin := range plugins {
		args = append(args, "-X", "lua_script:"+plugin)
	}
	cmd := exec.CommandContext(ctx, tshark, args...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("tshark on %s: %w: %s", path, err, bytes.TrimSpace(complaint.Bytes()))
	}
	v, err := parsePDML(bytes.NewReader(out))
	if err != nil {
		return nil, fmt.Errorf("tshark on %s: its output: %w", path, err)
	}
	return v, nil
}

// parsePDML parses PDML: packets contain protocols, which contain nested fields.
func parsePDML(r io.Reader) (*Dissection, error) {
	v := &Dissection{}
	var seen frame
	for d := xml.NewDecoder(r); ; {
		token, err := d.Token()
		if err == io.EOF {
			return v, nil
		}
		if err != nil {
			return nil, err
		}
		switch e := token.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "packet":
				seen = frame{}
			case "proto", "field":
				if err := v.note(&seen, e); err != nil {
					return nil, err
				}
			}
		case xml.EndElement:
			if e.Name.Local == "packet" {
				v.close(&seen)
			}
		}
	}
}

// frame is the state of the packet being parsed.
type frame struct {
	number    int
	payload   int  // bytes after the TCP header
	iwarp     bool // the dissector recognized it
	later     bool // it is the beginning of a unit that another frame ends
	repeated  bool // retransmitted
	malformed bool
}

// note processes one element.
func (v *Dissection) note(seen *frame, e xml.StartElement) error {
	name, show, text := attribute(e, "name"), attribute(e, "show"), attribute(e, "showname")
	numeric := func(into *int) error {
		n, err := strconv.ParseInt(show, 0, 64)
		if err != nil {
			return fmt.Errorf("field %s is %q, not a number: this version of tshark writes it differently", name, show)
		}
		*into = int(n)
		return nil
	}
	switch name {
	case "num":
		return numeric(&seen.number)
	case "tcp.len":
		return numeric(&seen.payload)
	case "tcp.reassembled_in":
		seen.later = true
	case "tcp.analysis.retransmission":
		seen.repeated = true
	case "_ws.malformed":
		seen.malformed = true
	case "iwarp_mpa":
		seen.iwarp = true
	case "iwarp_mpa.req":
		v.Requests++
	case "iwarp_mpa.rep":
		v.Replies++
	case "iwarp_mpa.fpdu":
		v.FPDUs++
	case "iwarp_mpa.marker_fpduptr":
		v.Markers++
	case "iwarp_mpa.crc_check": // the result is only in the text
		switch {
		case strings.Contains(text, "Good CRC32"):
			v.GoodCRC++
		case strings.Contains(text, "Bad CRC32"):
			v.BadCRC++
		}
	case "iwarp_ddp_rdmap":
		v.Headers = append(v.Headers, Header{})
	case "muster_dgram":
		v.Datagrams = append(v.Datagrams, Header{})
	}
	if n := len(v.Headers); n > 0 && show != "" && (strings.HasPrefix(name, "iwarp_ddp.") || strings.HasPrefix(name, "iwarp_rdma.")) {
		v.Headers[n-1][name] = show
	}
	if n := len(v.Datagrams); n > 0 && strings.HasPrefix(name, "muster_dgram.") {
		v.Datagrams[n-1][name] = show
	}
	return nil
}

// close records the faults of a parsed packet.
func (v *Dissection) close(seen *frame) {
	if seen.malformed {
		v.Malformed = append(v.Malformed, seen.number)
	}
	if seen.payload > 0 && !seen.iwarp && !seen.later && !seen.repeated {
		v.Undecoded = append(v.Undecoded, seen.number)
	}
}

// attribute returns the value of an attribute, empty if it is missing.
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
