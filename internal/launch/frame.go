package launch

// The messages between launcher and agents: frames of
//
//	length (4 bytes)  kind (1)  host (4)  body
//
// In a frame from the launcher, host is the destination (or everyHost); in a frame from
// an agent, it is the host that the frame is about. Bodies consist of variable-length
// numbers and of texts preceded by their length. The functions are pure; link.go sends
// and receives the bytes.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/muster-mpi/muster/internal/pmi"
)

// protocolVersion changes with every incompatible change of the frames.
const protocolVersion = 6

type frameKind uint8

const (
	// Down, from the launcher.
	frameAssign   frameKind = iota + 1 // the host of an agent and the hosts it starts (JSON)
	frameJob                           // the job (JSON)
	frameSignal                        // name of a signal
	frameDeath                         // ranks, host, status
	frameRelease                       // all ranks have entered the fence
	frameAnswer                        // answer to frameGet: its number, found, value
	frameStdin                         // bytes for rank 0; none: the end
	frameOutputOK                      // number of bytes of output that were written
	frameAskRows                       // number of the request, 1 if the states of threads are wanted
	framePing
	frameProgram // index, name and a piece of a program
	frameBlock   // the ranks of a host
	frameFetch   // number of the request, key that a rank of the host has put
	// Up, from the agents.
	frameReport  // states that ranks and hosts of a subtree have reached (report.go)
	frameLost    // a host could not be reached or was lost: a text
	frameRefused // the job cannot run on this host: a text
	frameEvent   // event of a rank's PMI client that is not in a report
	frameExited  // rank, how it ended, if it may have failed
	frameOutput  // rank, stream, bytes
	frameValues  // pairs that ranks have put
	frameGet     // number of the request, key
	frameFetched // answer to frameFetch: its number, found, value
	frameStdinOK // number of bytes of stdin that were read; none: rank 0 no longer reads
	frameRows    // number of the request, the rows
	framePulse   // progress of the ranks of a host
	frameNotice  // a text for the user
	framePong
	frameFile  // a piece of the file that rank 0 has written (fetch.go)
	frameKinds // number of kinds
)

// everyHost is the destination of a frame for all hosts.
const everyHost = 1<<32 - 1

type frame struct {
	kind frameKind
	host uint32
	body []byte
}

const (
	frameHead = 4 + 1 + 4
	// maxFrame is the maximum length. The longest frames are output without a line end
	// and batches of values.
	maxFrame = 4 << 20
)

func appendFrame(dst []byte, f frame) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(1+4+len(f.body)))
	dst = append(dst, byte(f.kind))
	dst = binary.BigEndian.AppendUint32(dst, f.host)
	return append(dst, f.body...)
}

// readFrame reads one frame. It returns io.EOF if the stream ends between two frames.
func readFrame(r io.Reader) (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(head[:])
	f := frame{kind: frameKind(head[4]), host: binary.BigEndian.Uint32(head[5:])}
	if n < 1+4 || n > maxFrame || f.kind == 0 || f.kind >= frameKinds {
		return frame{}, fmt.Errorf("invalid frame header %q", head[:])
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

// bodyWriter encodes a body.
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

// bodyReader decodes a body. After the first error it returns zeros, and err reports the
// error.
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
		return errors.New("the frame is truncated")
	}
	return nil
}

// Bodies with several fields.

func numbersBody(ns ...int64) []byte {
	var w bodyWriter
	for _, n := range ns {
		w.number(n)
	}
	return w
}

func readCount(body []byte) (int64, error) {
	r := bodyReader{rest: body}
	return r.number(), r.err()
}

func deathBody(ranks spans, host, status string) []byte {
	var w bodyWriter
	w.spans(ranks)
	w.text(host)
	w.text(status)
	return w
}

func readDeath(body []byte) (ranks spans, host, status string, err error) {
	r := bodyReader{rest: body}
	ranks, host, status = r.spans(maxRanks), r.text(), r.text()
	return ranks, host, status, r.err()
}

func eventBody(e pmi.Event) []byte {
	var w bodyWriter
	w.number(int64(e.Rank))
	w.number(int64(e.Phase))
	w.number(int64(e.Code))
	w.text(e.Why)
	w.text(e.Host)
	w.text(e.Terms)
	w.text(e.Refused)
	w.truth(e.Unreachable)
	w.number(int64(e.Peer))
	return w
}

func readEvent(body []byte) (pmi.Event, error) {
	r := bodyReader{rest: body}
	e := pmi.Event{Rank: int(r.number()), Phase: pmi.Phase(r.number()), Code: int(r.number()), Why: r.text(),
		Host: r.text(), Terms: r.text(), Refused: r.text(), Unreachable: r.truth(), Peer: int(r.number())}
	return e, r.err()
}

// maxValuesFrame is the size at which a batch of values is split.
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
