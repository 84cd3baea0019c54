package mpi

// Values of any type. They are encoded with encoding/gob, which prefers GobEncoder
// and encoding.BinaryMarshaler, and sent as bytes. The receiver probes the message
// before it receives it, and so learns its size.

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"reflect"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// SendValue sends a value for [RecvValue]: a string, a map, a slice, a struct with
// exported fields, or anything that implements encoding.BinaryMarshaler. It encodes
// the value and allocates twice; [Send] is faster for slices of numbers.
func SendValue[T any](c *Comm, v T, dst, tag int) error {
	b, err := encodeToSend(c, "SendValue", &v, dst, tag)
	if err != nil || dst == ProcNull {
		return err
	}
	return send(c, "SendValue", b, dst, tag, p2p.Standard)
}

// IsendValue starts a [SendValue]. The value may be changed at once, since its encoded form is
// sent.
func IsendValue[T any](c *Comm, v T, dst, tag int) Request {
	b, err := encodeToSend(c, "IsendValue", &v, dst, tag)
	if err != nil || dst == ProcNull {
		return c.refusedRequest(err)
	}
	return startSend(c, "IsendValue", b, dst, tag, p2p.Standard)
}

// encodeToSend encodes a value for another rank: nothing for ProcNull.
func encodeToSend[T any](c *Comm, op string, v *T, dst, tag int) ([]byte, error) {
	if dst == ProcNull {
		return nil, c.checkPeer(op, dst, tag)
	}
	return encodeValue(c, op, v)
}

// RecvValue receives a value that [SendValue] sent. T must be the type of that
// value, or one that encoding/gob can decode it into. From ProcNull it receives the
// zero value.
func RecvValue[T any](c *Comm, src, tag int) (T, Status, error) {
	h := c.begin("RecvValue", CallRecv, src, tag, 0)
	m, err := c.match(engine.NoContext, "RecvValue", src, tag)
	if err != nil {
		var none T
		h.end(Status{}, err)
		return none, Status{}, err
	}
	v, st, err := mrecvValue[T](m, "RecvValue")
	h.end(st, err)
	return v, st, err
}

// MrecvValue is [RecvValue] of a matched message.
func MrecvValue[T any](m *Message) (T, Status, error) {
	h := m.c.begin("MrecvValue", CallMrecv, m.st.Source, m.st.Tag, m.st.Bytes)
	v, st, err := mrecvValue[T](m, "MrecvValue")
	h.end(st, err)
	return v, st, err
}

func mrecvValue[T any](m *Message, op string) (v T, st Status, err error) {
	b, st, err := mrecvSlice[byte](m, op)
	if err != nil || st.Source == ProcNull {
		return v, st, err
	}
	return v, st, decodeValue(m.c, op, st.Source, b, &v)
}

// BcastValue returns root's value on all ranks. It is collective; v is used at the
// root only.
func BcastValue[T any](c *Comm, v T, root int) (T, error) {
	h := c.begin("BcastValue", CallCollective, root, AnyTag, 0)
	v, err := bcastValue(c, v, root)
	return v, h.finish(err)
}

func bcastValue[T any](c *Comm, v T, root int) (T, error) {
	if err := c.checkRoot("BcastValue", root); err != nil {
		return v, err
	}
	// The length comes first: -1 informs the others that root could not encode its
	// value.
	n := []int64{-1}
	var b []byte
	var refused error
	if c.rank == root {
		if b, refused = encodeValue(c, "BcastValue", &v); refused == nil {
			n[0] = int64(len(b))
		}
	}
	if err := c.bcast("BcastValue", rawBytes(n), root); err != nil {
		return v, err
	}
	switch {
	case refused != nil:
		return v, refused
	case n[0] < 0:
		return v, c.refuse(ErrType, "BcastValue", "rank %d could not encode its value; its error says why", root)
	case c.rank != root:
		b = make([]byte, n[0])
	}
	if err := c.bcast("BcastValue", b, root); err != nil || c.rank == root {
		return v, err
	}
	var out T
	err := decodeValue(c, "BcastValue", root, b, &out)
	return out, err
}

// encodeValue passes gob a pointer if T is an interface, because gob encodes an
// interface value only through a pointer. It returns gob's panic on a nil pointer as
// an error.
func encodeValue[T any](c *Comm, op string, v *T) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = c.refuse(ErrType, op, "%v cannot be encoded: %v", reflect.TypeFor[T](), p)
		}
	}()
	var (
		buf  bytes.Buffer
		what any = *v
		hint     = "export the fields to be sent, or give the type a MarshalBinary method"
	)
	if reflect.TypeFor[T]().Kind() == reflect.Interface {
		what, hint = v, "make the concrete types known with gob.Register in every rank"
	}
	if err := gob.NewEncoder(&buf).Encode(what); err != nil {
		return nil, c.refuse(ErrType, op, "%v cannot be encoded: %w; %s", reflect.TypeFor[T](), err, hint)
	}
	return buf.Bytes(), nil
}

func decodeValue[T any](c *Comm, op string, src int, b []byte, v *T) error {
	err := gob.NewDecoder(bytes.NewReader(b)).Decode(v)
	if err == nil {
		return nil
	}
	e := &Error{Class: ErrType, Op: op, Comm: c.Name(), Rank: c.rank, Peer: src, Tag: noTag,
		Err:  fmt.Errorf("the message of %d bytes is not a %v: %w", len(b), reflect.TypeFor[T](), err),
		Hint: "receive with the type that was sent by SendValue"}
	if op != "RecvValue" && op != "MrecvValue" {
		e.Hint = "use the same type on all ranks"
	}
	return e
}
