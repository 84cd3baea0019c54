package mpi

// Values of any type. They are encoded with encoding/gob, which prefers GobEncoder
// and encoding.BinaryMarshaler, and sent as bytes. The receiver probes the message
// before it receives it, and so learns its size.

import (
	"bytes"
	"context"
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
	return sendValue(engine.NoContext, c, v, dst, tag)
}

// SendValueContext is [SendValue] with a context. If ctx ends first, the message
// may still be received. The value may be changed in any case, since its encoded
// form is sent.
func SendValueContext[T any](ctx context.Context, c *Comm, v T, dst, tag int) error {
	return sendValue(ctx, c, v, dst, tag)
}

func sendValue[T any](ctx context.Context, c *Comm, v T, dst, tag int) error {
	if dst == ProcNull {
		return c.checkPeer("SendValue", dst, tag)
	}
	b, err := encodeValue(c, "SendValue", &v)
	if err != nil {
		return err
	}
	if ctx == nil {
		return send(c, "SendValue", b, dst, tag, p2p.Standard)
	}
	return sendContext(ctx, c, "SendValue", b, dst, tag, p2p.Standard)
}

// RecvValue receives a value that [SendValue] sent. T must be the type of that
// value, or one that encoding/gob can decode it into. From ProcNull it receives the
// zero value.
func RecvValue[T any](c *Comm, src, tag int) (T, Status, error) {
	return RecvValueContext[T](engine.NoContext, c, src, tag)
}

// RecvValueContext is [RecvValue] with a context. If ctx ends first, no message is
// lost.
func RecvValueContext[T any](ctx context.Context, c *Comm, src, tag int) (T, Status, error) {
	h := c.begin("RecvValue", CallRecv, src, tag, 0)
	v, st, err := recvValue[T](ctx, c, src, tag)
	h.end(st, err)
	return v, st, err
}

func recvValue[T any](ctx context.Context, c *Comm, src, tag int) (v T, st Status, err error) {
	st, g, err := c.probe(ctx, "RecvValue", src, tag, true)
	if err != nil || st.Source == ProcNull {
		return v, st, err
	}
	b := make([]byte, st.Bytes)
	if st, err = imrecv(&Message{c, g, st}, b).wait(engine.NoContext); err != nil {
		return v, st, err
	}
	return v, st, decodeValue(c, "RecvValue", st.Source, b, &v)
}

// BcastValue returns root's value on all ranks. It is collective; v is used at the
// root only.
func BcastValue[T any](c *Comm, v T, root int) (T, error) {
	h := c.begin("BcastValue", CallCollective, root, AnyTag, 0)
	v, err := bcastValue(c, v, root)
	return v, h.done(err)
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
	if op != "RecvValue" {
		e.Hint = "use the same type on all ranks"
	}
	return e
}
