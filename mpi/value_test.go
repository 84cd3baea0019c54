package mpi_test

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

type order struct {
	Name  string
	Lines map[string][]int
	Next  *order
}

type shape interface{ Area() float64 }

type square struct{ Side float64 }

func (s square) Area() float64 { return s.Side * s.Side }

// version is encoded by its MarshalBinary: its fields are not exported.
type version struct{ major, minor byte }

func (v version) MarshalBinary() ([]byte, error) { return []byte{v.major, v.minor}, nil }

func (v *version) UnmarshalBinary(b []byte) error {
	if len(b) != 2 {
		return fmt.Errorf("version of %d bytes", len(b))
	}
	v.major, v.minor = b[0], b[1]
	return nil
}

func pass[T any](t *testing.T, c *mpi.Comm, v T) {
	t.Helper()
	next, prev := neighbors(c)
	ctx, cancel := context.WithCancelCause(context.Background())
	sent := make(chan error, 1)
	go func() { // a large value would wait for its receiver
		err := mpi.SendValue(c, v, next, 5)
		if err != nil {
			cancel(err)
		}
		sent <- err
	}()
	got, st, err := recvValue[T](ctx, c, prev, 5)
	noError(t, err, fmt.Sprintf("RecvValue of a %T", v))
	noError(t, <-sent, fmt.Sprintf("SendValue of a %T", v))
	if !reflect.DeepEqual(got, v) {
		t.Errorf("sent %v, received %v", v, got)
	}
	if st.Source != prev || st.Tag != 5 || st.Bytes == 0 {
		t.Errorf("RecvValue tells %+v", st)
	}
	got, err = mpi.BcastValue(c, v, c.Size()-1)
	noError(t, err, fmt.Sprintf("BcastValue of a %T", v))
	if !reflect.DeepEqual(got, v) {
		t.Errorf("broadcast %v, received %v", v, got)
	}
}

func TestValues(t *testing.T) {
	gob.Register(square{})
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		pass(t, c, "a string, ünïcode too")
		pass(t, c, 42)
		pass(t, c, []string{"a", "", "c"})
		pass(t, c, map[string][]float64{"x": {1, 2}, "y": {3}})
		pass(t, c, order{Name: "first", Lines: map[string][]int{"a": {1}}, Next: &order{Name: "second"}})
		pass(t, c, &order{Name: "behind a pointer"})
		pass(t, c, version{1, 9})
		pass(t, c, big.NewInt(1).Lsh(big.NewInt(1), 300))
		pass(t, c, time.Date(2024, 2, 29, 12, 0, 0, 5, time.UTC))
		pass[shape](t, c, square{3})
		pass(t, c, strings.Repeat("large ", 200_000))
	})
}

// The sender rejects values that gob cannot encode, with the type and a remedy.
func TestUnencodableValues(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2}, func(t *testing.T, c *mpi.Comm) {
		refused := func(err error, want ...string) {
			t.Helper()
			wantClass(t, err, mpi.ErrType, "SendValue")
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		}
		refused(mpi.SendValue(c, func() {}, 0, 1), "func()")
		refused(mpi.SendValue(c, make(chan int), 0, 1), "chan int")
		refused(mpi.SendValue(c, struct{ hidden int }{1}, 0, 1), "no exported fields", "MarshalBinary")
		refused(mpi.SendValue[*order](c, nil, 0, 1), "*mpi_test.order", "nil pointer")
		refused(mpi.SendValue[any](c, struct{ Unknown int }{1}, 0, 1), "gob.Register")
		wantClass(t, mpi.SendValue(c, 1, 99, 1), mpi.ErrRank, "SendValue to rank 99")
		wantClass(t, mpi.SendValue(c, 1, 0, -3), mpi.ErrTag, "SendValue with tag -3")
		if _, ok, _ := c.Iprobe(0, 1); ok {
			t.Error("a refused value was sent")
		}
		// In a broadcast all ranks get the error, and the next one works.
		var err error
		if c.Rank() == 0 {
			_, err = mpi.BcastValue[any](c, func() {}, 0)
		} else {
			_, err = mpi.BcastValue[any](c, nil, 0)
		}
		wantClass(t, err, mpi.ErrType, "BcastValue of a function")
		pass(t, c, "still in step")
	})
}

// A message of an unexpected type is an error and is consumed.
func TestValueTypeMismatch(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		noError(t, mpi.SendValue(c, "text", 0, 1), "SendValue")
		_, _, err := mpi.RecvValue[int](c, 0, 1)
		e := wantClass(t, err, mpi.ErrType, "RecvValue[int] of a string")
		if e.Peer != 0 || !strings.Contains(err.Error(), "int") {
			t.Errorf("error %q does not say from whom and what", err)
		}
		noError(t, mpi.Send(c, []byte("no gob at all"), 0, 1), "Send of bytes")
		_, _, err = mpi.RecvValue[string](c, 0, 1)
		wantClass(t, err, mpi.ErrType, "RecvValue of plain bytes")
		if _, ok, _ := c.Iprobe(0, mpi.AnyTag); ok {
			t.Error("a message that could not be decoded is still there")
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_, _, err = recvValue[string](ctx, c, 0, 1)
		if !errors.Is(err, mpi.ErrPending) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("MrecvValue without a message: %v", err)
		}
	})
}

// recvValue receives a value unless ctx ends first.
func recvValue[T any](ctx context.Context, c *mpi.Comm, src, tag int) (v T, st mpi.Status, err error) {
	for m, err := range c.Messages(ctx, src, tag) {
		if err != nil {
			return v, st, err
		}
		return mpi.MrecvValue[T](m)
	}
	return v, st, errors.New("no message and no error")
}
