package launch

// What launcher and agents say to each other: frames of
//
//	length (4 bytes)  kind (1)  host (4)  body
//
// The host is whom a frame is for on the way down (or everybody), and whom it is
// about on the way up. Bodies are made of numbers of variable length and of texts
// with their length before them. Pure; link.go moves the bytes.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/muster-mpi/muster/internal/pmi"
)

// protocolVersion changes with every change of frames that an older agent would
// not understand.
const protocolVersion = 2

type frameKind uint8

const (
	// Down, from the launcher.
	frameAssign   frameKind = iota + 1 // which host an agent is, and which others it starts (JSON)
	frameJob                           // what to run (JSON)
	frameSignal                        // its name
	frameDeath                         // rank, host, status
	frameRelease                       // the fence is over
	frameAnswer                        // to frameGet: its number, found, value
	frameStdin                         // bytes for rank 0; none: the end
	frameOutputOK                      // so many bytes of output were written
	frameAskRows                       // a number
	framePing
	// Up, from the agents.
	frameReady   // the agent runs
	frameLost    // a host could not be reached or was lost: a text
	frameStarted // rank, process number
	frameRefused // the job cannot run on this host: a text
	frameEvent   // what a rank's PMI client did
	frameExited  // rank, how
	frameOutput  // rank, stream, bytes
	frameValues  // pairs that ranks have put
	frameFence   // so many ranks, all of a host, are in a fence
	frameGet     // a number, a key
	frameStdinOK // so many bytes of stdin were read; none: nobody reads any more
	frameRows    // the number that was asked with, the rows
	framePulse   // whether the ranks of a host move
	frameDrained // all output of a host has been sent
	frameSay     // a text for people
	framePong
	frameKinds // how many there are
)

// everyHost is the host of a frame for all.
const everyHost = 1<<32 - 1

type frame struct {
	kind frameKind
	host uint32
	body []byte
}

const (
	frameHead = 4 + 1 + 4
	// maxFrame bounds what is believed of a length. The longest frames are
	// output without a line end and batches of values.
	maxFrame = 4 << 20
)

func appendFrame(dst []byte, f frame) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(1+4+len(f.body)))
	dst = append(dst, byte(f.kind))
	dst = binary.BigEndian.AppendUint32(dst, f.host)
	return append(dst, f.body...)
}

// readFrame reads one frame. io.EOF means that the stream ended between two.
func readFrame(r io.Reader) (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(head[:])
	f := frame{kind: frameKind(head[4]), host: binary.BigEndian.Uint32(head[5:])}
	if n < 1+4 || n > maxFrame || f.kind == 0 || f.kind >= frameKinds {
		return frame{}, fmt.Errorf("%q is no frame", head[:])
	}
	f.body = make([]byte, n-1-4)
	if _, err := io.ReadFull(r, f.body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	return f, nil
}

// bodyWriter makes a body.
type bodyWriter []byte

func (w *bodyWriter) number(n int64) { *w = binary.AppendVarint(*w, n) }

func (w *bodyWriter) text(s string) {
	w.number(int64(len(s)))
	*w = append(*w, s...)
}

func (w *bodyWriter) truth(b bool) {
	n := int64(0)
	if b {
		n = 1
	}
	w.number(n)
}

// bodyReader takes a body apart. After the first thing that does not fit it gives
// zeros, and err tells.
type bodyReader struct {
	rest []byte
	bad  bool
}

func (r *bodyReader) number() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *bodyReader) text() string {
	n := r.number()
	if n < 0 || n > int64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *bodyReader) truth() bool { return r.number() != 0 }

func (r *bodyReader) err() error {
	if r.bad {
		return errors.New("the frame is cut off")
	}
	return nil
}

// The bodies that are more than one text.

func numbersBody(ns ...int64) []byte {
	var w bodyWriter
	for _, n := range ns {
		w.number(n)
	}
	return w
}

func readNumbers(body []byte, into ...*int64) error {
	r := bodyReader{rest: body}
	for _, n := range into {
		*n = r.number()
	}
	return r.err()
}

func deathBody(d pmi.Death) []byte {
	var w bodyWriter
	w.number(int64(d.Rank))
	w.text(d.Host)
	w.text(d.Status)
	return w
}

func readDeath(body []byte) (pmi.Death, error) {
	r := bodyReader{rest: body}
	d := pmi.Death{Rank: int(r.number()), Host: r.text(), Status: r.text()}
	return d, r.err()
}

func eventBody(e pmi.Event) []byte {
	var w bodyWriter
	w.number(int64(e.Rank))
	w.number(int64(e.Phase))
	w.truth(e.Fence)
	w.number(int64(e.Code))
	w.text(e.Why)
	return w
}

func readEvent(body []byte) (pmi.Event, error) {
	r := bodyReader{rest: body}
	e := pmi.Event{Rank: int(r.number()), Phase: pmi.Phase(r.number()), Fence: r.truth(), Code: int(r.number()), Why: r.text()}
	return e, r.err()
}

// maxValuesFrame is where a batch of values is cut.
const maxValuesFrame = 256 << 10

// valuesBodies packs pairs into as many bodies as needed.
func valuesBodies(values []pmi.Pair) (bodies [][]byte) {
	var w bodyWriter
	for _, v := range values {
		w.text(v.Key)
		w.text(v.Value)
		if len(w) >= maxValuesFrame {
			bodies = append(bodies, w)
			w = nil
		}
	}
	if len(w) > 0 {
		bodies = append(bodies, w)
	}
	return bodies
}

func readValues(body []byte) ([]pmi.Pair, error) {
	r := bodyReader{rest: body}
	var values []pmi.Pair
	for len(r.rest) > 0 {
		values = append(values, pmi.Pair{Key: r.text(), Value: r.text()})
	}
	return values, r.err()
}

func answerBody(number int64, value string, ok bool) []byte {
	var w bodyWriter
	w.number(number)
	w.truth(ok)
	w.text(value)
	return w
}

func readAnswer(body []byte) (number int64, value string, ok bool, err error) {
	r := bodyReader{rest: body}
	number, ok, value = r.number(), r.truth(), r.text()
	return number, value, ok, r.err()
}

func getBody(number int64, key string) []byte {
	var w bodyWriter
	w.number(number)
	w.text(key)
	return w
}

func readGet(body []byte) (number int64, key string, err error) {
	r := bodyReader{rest: body}
	number, key = r.number(), r.text()
	return number, key, r.err()
}

func outputBody(rank int, isStderr bool, text []byte) []byte {
	w := make(bodyWriter, 0, 8+len(text))
	w.number(int64(rank))
	w.truth(isStderr)
	return append(w, text...)
}

func readOutput(body []byte) (rank int, isStderr bool, text []byte, err error) {
	r := bodyReader{rest: body}
	rank, isStderr = int(r.number()), r.truth()
	return rank, isStderr, r.rest, r.err()
}
