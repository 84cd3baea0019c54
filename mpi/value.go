package mpi

// Values of any shape. They are encoded with encoding/gob, which asks
// encoding.BinaryMarshaler and GobEncoder first, and sent as bytes. The receiver
// need not know the size: it looks at the message before it receives it.

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"reflect"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// SendValue sends a value that [RecvValue] receives: strings, maps, slices,
// structs with exported fields, and whatever implements encoding.BinaryMarshaler.
// It costs an encoding and two allocations; slices of numbers go faster with
// [Send].
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

// RecvValue receives a value that [SendValue] sent. T must be the type that was
// sent, or one that encoding/gob takes for it. From ProcNull it receives the
// zero value.
func RecvValue[T any](c *Comm, src, tag int) (T, Status, error) {
	return recvValue[T](engine.NoContext, c, src, tag)
}

// RecvValueContext is RecvValue that gives up when ctx ends. No message is lost
// by that.
func RecvValueContext[T any](ctx context.Context, c *Comm, src, tag int) (T, Status, error) {
	return recvValue[T](ctx, c, src, tag)
}

func recvValue[T any](ctx context.Context, c *Comm, src, tag int) (v T, st Status, err error) {
	st, g, err := c.probe(ctx, "RecvValue", src, tag, true)
	if err != nil || st.Source == ProcNull {
		return v, st, err
	}
	b := make([]byte, st.Bytes)
	if st, err = Mrecv(&Message{c, g, st}, b); err != nil {
		return v, st, err
	}
	return v, st, decodeValue(c, "RecvValue", st.Source, b, &v)
}

// BcastValue gives all ranks root's value. It is collective; v is used at the
// root only.
func BcastValue[T any](c *Comm, v T, root int) (T, error) {
	if err := c.checkRoot("BcastValue", root); err != nil {
		return v, err
	}
	// The length goes first; the others must hear of it too if root's value
	// cannot be encoded.
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

// encodeValue gives gob a pointer if T is an interface, since only so is it
// encoded as one. gob panics on a nil pointer; here that is an error like others.
func encodeValue[T any](c *Comm, op string, v *T) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = c.refuse(ErrType, op, "%v cannot be encoded: %v", reflect.TypeFor[T](), p)
		}
	}()
	var (
		buf  bytes.Buffer
		what any = *v
		hint     = "export the fields that should travel, or give the type a MarshalBinary method"
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
	return &Error{Class: ErrType, Op: op, Comm: c.name, Rank: c.rank, Peer: src, Tag: noTag,
		Err:  fmt.Errorf("the message of %d bytes is not a %v: %w", len(b), reflect.TypeFor[T](), err),
		Hint: "receive with the type that was sent by SendValue"}
}
