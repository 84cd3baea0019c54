package sched

import (
	"errors"
	"strings"
	"testing"
)

// Small hand-written graphs, correct and faulty ones: each check must report its kind
// of fault. Package coll tests mutants of real algorithms.

// graphsBy builds a graph for each rank.
func graphsBy(t *testing.T, build ...func(b *Builder)) []*Graph {
	t.Helper()
	var b Builder
	graphs := make([]*Graph, len(build))
	for r, f := range build {
		b.Reset(r, len(build))
		f(&b)
		g, err := b.Graph()
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
		graphs[r] = g
	}
	return graphs
}

func in(off, n int) Span  { return Span{In, off, n} }
func out(off, n int) Span { return Span{Out, off, n} }

// given returns the memory of a rank whose input is its data from offset 0.
func given(rank, input, output int, end ...Piece) Memory {
	return Memory{In: input, Out: output, Start: []Piece{{Span: in(0, input), From: rank, To: rank + 1}}, End: end}
}

// swap returns the task of two ranks that exchange 8 bytes.
func swap() *Task {
	return &Task{Ranks: []Memory{
		given(0, 8, 8, Piece{Span: out(0, 8), From: 1, To: 2}),
		given(1, 8, 8, Piece{Span: out(0, 8), From: 0, To: 1}),
	}}
}

// sum returns the task of an allreduce of 8 bytes, in elements of 4, on n ranks.
func sum(n int, commutes bool) *Task {
	t := &Task{Elem: 4, Commutes: commutes, Agree: true}
	for r := range n {
		t.Ranks = append(t.Ranks, given(r, 8, 8, Piece{Span: out(0, 8), From: 0, To: n}))
	}
	return t
}

// exchange builds a concurrent send and receive.
func exchange(peer int) func(b *Builder) {
	return func(b *Builder) {
		b.Send(peer, in(0, 8))
		b.Recv(peer, out(0, 8))
	}
}

func TestValidateFindsFaults(t *testing.T) {
	idle := func(*Builder) {}
	for _, c := range []struct {
		about string
		build []func(b *Builder)
		task  *Task
		want  string // a part of the error, or nothing
	}{
		{"an exchange", []func(b *Builder){exchange(1), exchange(0)}, swap(), ""},
		{"an exchange in halves, the receives in order", []func(b *Builder){exchange(1), func(b *Builder) {
			tmp := b.Tmp(8)
			r := b.Recv(0, tmp)
			b.Copy(out(4, 4), tmp.At(4, 4), r)
			b.Copy(out(0, 4), tmp.At(0, 4), r)
			b.Send(0, in(0, 8))
		}}, swap(), ""},
		{"no receive", []func(b *Builder){exchange(1), func(b *Builder) { b.Send(0, in(0, 8)) }}, swap(),
			"pairing: rank 0, operation 0: send in[0:8) to rank 1 matches no receive"},
		{"no send", []func(b *Builder){exchange(1), func(b *Builder) { b.Recv(0, out(0, 8)) }}, swap(),
			"pairing: rank 0, operation 1: recv out[0:8) from rank 1 matches no send"},
		{"lengths differ", []func(b *Builder){exchange(1), func(b *Builder) {
			b.Send(0, in(0, 8))
			b.Recv(0, out(0, 4))
		}}, swap(), "8 bytes, matches operation 1 of rank 1, recv out[0:4) from rank 0, which takes 4"},
		{"both send first", []func(b *Builder){
			func(b *Builder) { b.Recv(1, out(0, 8), b.Send(1, in(0, 8))) },
			func(b *Builder) { b.Recv(0, out(0, 8), b.Send(0, in(0, 8))) },
		}, swap(), "operation 1 of rank 1 (recv out[0:8) from rank 0) waits for the completion of operation 0 of rank 1"},
		{"posting order blocks", []func(b *Builder){
			func(b *Builder) { // the second send is posted after one that waits for the answer
				r := b.Recv(1, out(0, 8))
				b.Send(1, in(0, 4), r)
				b.Send(1, in(4, 4))
			},
			func(b *Builder) {
				b.Recv(0, out(0, 4))
				b.Send(0, in(0, 8), b.Recv(0, out(4, 4)))
			},
		}, swap(), "blocking"},
		{"a reply is sent before the request is received", []func(b *Builder){exchange(1), func(b *Builder) {
			b.Send(0, out(0, 8))
			b.Recv(0, out(0, 8))
		}}, swap(), "race: rank 1, operation 1: recv out[0:8) from rank 0 and operation 0, send out[0:8) to rank 0, touch the same bytes"},
		{"posting order does not order completion", []func(b *Builder){
			func(b *Builder) {
				b.Send(1, in(0, 8))
				b.Send(1, in(0, 8))
				b.Recv(1, out(0, 8))
			},
			func(b *Builder) {
				b.Recv(0, out(0, 8))
				b.Recv(0, out(0, 8))
				b.Send(0, in(0, 8))
			},
		}, swap(), "race: rank 1, operation 1"},
		{"completion before an ordered post", []func(b *Builder){
			func(b *Builder) {
				b.Send(1, in(0, 8))
				b.Send(1, in(0, 0))
				b.Send(1, in(0, 8))
				b.Recv(1, out(0, 8))
			},
			func(b *Builder) {
				b.Recv(0, b.Tmp(0), b.Recv(0, out(0, 8)))
				b.Recv(0, out(0, 8))
				b.Send(0, in(0, 8))
			},
		}, swap(), ""},
		{"the wrong half", []func(b *Builder){exchange(1), func(b *Builder) {
			tmp := b.Tmp(8)
			r := b.Recv(0, tmp)
			b.Copy(out(0, 4), tmp.At(4, 4), r)
			b.Copy(out(4, 4), tmp.At(0, 4), r)
			b.Send(0, in(0, 8))
		}}, swap(), "value: rank 1: out[0:4) must be data [0:4) of rank 0 at the end, but is data [4:8) of rank 0, last written by operation 1"},
		{"unwritten scratch", []func(b *Builder){exchange(1), func(b *Builder) {
			b.Recv(0, out(0, 8))
			b.Send(0, b.Tmp(8))
		}}, swap(), "but is unwritten scratch [0:8) of rank 1"},
		{"scratch too small", []func(b *Builder){exchange(1), func(b *Builder) {
			b.Recv(0, out(0, 8))
			b.Send(0, b.Tmp(8).At(60, 8))
		}}, swap(), "form: rank 1, operation 1: send tmp[60:68) to rank 0 reads beyond the 64 bytes of tmp"},
		{"one byte too far", []func(b *Builder){idle}, &Task{Ranks: []Memory{given(0, 8, 9, Piece{Span: out(0, 8), From: 0, To: 1})}}, "written by no operation"},
		{"beside the result", []func(b *Builder){func(b *Builder) {
			b.Copy(out(0, 8), in(0, 8))
			b.Copy(out(8, 1), in(0, 1))
		}}, &Task{Ranks: []Memory{given(0, 8, 9, Piece{Span: out(0, 8), From: 0, To: 1})}},
			"copy in[0:1) to out[8:9) writes outside the results"},
		{"anything allowed", []func(b *Builder){func(b *Builder) { b.Copy(out(0, 8), in(0, 8)) }},
			&Task{Ranks: []Memory{given(0, 8, 8, Piece{Span: out(0, 8), Free: true})}}, ""},
		{"a task with overlapping results", []func(b *Builder){func(b *Builder) { b.Copy(out(0, 8), in(0, 8)) }},
			&Task{Ranks: []Memory{given(0, 8, 8, Piece{Span: out(0, 8), From: 0, To: 1}, Piece{Span: out(4, 4), From: 0, To: 1, At: 4})}},
			"the task itself is wrong"},
	} {
		t.Run(c.about, func(t *testing.T) { wantFault(t, Validate(graphsBy(t, c.build...), c.task), c.want) })
	}
}

// wantFault checks that err is a Fault whose text contains want, or nil if want is empty.
func wantFault(t *testing.T, err error, want string) {
	t.Helper()
	var f *Fault
	switch {
	case err == nil && want != "":
		t.Errorf("no fault found, want %q", want)
	case err != nil && want == "":
		t.Errorf("unexpected fault: %v", err)
	case err != nil && (!errors.As(err, &f) || !strings.Contains(err.Error(), want)):
		t.Errorf("got %q, want a fault with %q", err, want)
	}
}

func TestValidateReductions(t *testing.T) {
	// both exchanges the inputs of two ranks and combines them.
	both := func(combine func(b *Builder, own, other Span, got ID)) []func(b *Builder) {
		one := func(peer int) func(b *Builder) {
			return func(b *Builder) {
				b.Send(peer, in(0, 8))
				own, other := out(0, 8), b.Tmp(8)
				got := b.Recv(peer, other)
				combine(b, own, other, b.Join(got, b.Copy(own, in(0, 8))))
			}
		}
		return []func(b *Builder){one(1), one(0)}
	}
	leftIn := both(func(b *Builder, own, other Span, got ID) { b.Reduce(own, other, got) })
	for _, c := range []struct {
		about    string
		build    []func(b *Builder)
		commutes bool
		want     string
	}{
		{"other ∘ own, commuting", leftIn, true, ""},
		{"other ∘ own, in order on rank 1 only", leftIn, false, "rank 0: out[0:8) must be data [0:8) of ranks 0 to 1 at the end, but is data [0:8) of rank 1 ∘ data [0:8) of rank 0"},
		{"the lower rank left", []func(b *Builder){
			func(b *Builder) {
				b.Send(1, in(0, 8))
				r := b.Recv(1, out(0, 8))
				b.Reduce(out(0, 8), in(0, 8), r)
			},
			leftIn[1],
		}, false, ""},
		{"the same twice", both(func(b *Builder, own, other Span, got ID) {
			b.Reduce(own, other, b.Reduce(own, other, got))
		}), true, "data [0:8) of ranks 0 to 1 ∘ data [0:8) of rank 1"},
		{"no order between two reductions", both(func(b *Builder, own, other Span, got ID) {
			b.Reduce(own.At(0, 4), other.At(0, 4), got)
			b.Reduce(own, other, got)
		}), true, "race"},
		{"a split element", both(func(b *Builder, own, other Span, got ID) {
			b.Reduce(own.At(0, 6), other.At(0, 6), got)
			b.Reduce(own.At(6, 2), other.At(6, 2), got)
		}), true, "splits an element of 4 bytes"},
		{"unaligned elements", both(func(b *Builder, own, other Span, got ID) {
			b.Reduce(own.At(0, 4), other.At(2, 4), got)
		}), true, "splits elements of 4 bytes"},
		{"overlapping operands", both(func(b *Builder, own, other Span, got ID) {
			b.Reduce(own.At(0, 4), own.At(2, 4), got)
		}), true, "overlapping operands"},
		{"different halves", both(func(b *Builder, own, other Span, got ID) {
			b.Reduce(own.At(0, 4), other.At(4, 4), got)
			b.Reduce(own.At(4, 4), other.At(0, 4), got)
		}), true, "at the end, but is"},
	} {
		t.Run(c.about, func(t *testing.T) { wantFault(t, Validate(graphsBy(t, c.build...), sum(2, c.commutes)), c.want) })
	}
}

// TestValidateAgreement lets three ranks group the operands of a sum in two ways. The
// results are correct, but floating-point results would differ.
func TestValidateAgreement(t *testing.T) {
	rank := func(left bool) func(b *Builder) {
		return func(b *Builder) {
			var at [3]Span
			var got ID = None
			for r := range at {
				if r == b.rank {
					at[r] = in(0, 8)
					continue
				}
				b.Send(r, in(0, 8))
				at[r] = b.Tmp(8)
				got = b.Join(got, b.Recv(r, at[r]))
			}
			last := b.Copy(out(0, 8), at[2], got)
			if left { // (0 ∘ 1) ∘ 2
				mid := b.Tmp(8)
				m := b.Reduce(mid, at[0], b.Copy(mid, at[1], got))
				b.Reduce(out(0, 8), mid, last, m)
			} else { // 0 ∘ (1 ∘ 2)
				b.Reduce(out(0, 8), at[0], b.Reduce(out(0, 8), at[1], last))
			}
		}
	}
	for _, commutes := range []bool{true, false} {
		task := sum(3, commutes)
		wantFault(t, Validate(graphsBy(t, rank(true), rank(true), rank(true)), task), "")
		mixed := graphsBy(t, rank(true), rank(true), rank(false))
		wantFault(t, Validate(mixed, task), "grouped differently")
		task.Agree = false
		wantFault(t, Validate(mixed, task), "")
	}
}

// TestValidateSync lets ranks notify each other that they have begun.
func TestValidateSync(t *testing.T) {
	none := Span{Buf: Tmp}
	both := func(peer int) func(b *Builder) {
		return func(b *Builder) {
			b.Send(peer, none)
			b.Recv(peer, none)
		}
	}
	for _, c := range []struct {
		about string
		build []func(b *Builder)
		want  string
	}{
		{"one rank", []func(b *Builder){func(*Builder) {}}, ""},
		{"two ranks", []func(b *Builder){both(1), both(0)}, ""},
		{"one notifies the other", []func(b *Builder){
			func(b *Builder) { b.Send(1, none) },
			func(b *Builder) { b.Recv(0, none) },
		}, "sync: rank 0: it can end before rank 1 has begun"},
		{"up a chain and down", []func(b *Builder){
			func(b *Builder) { b.Recv(1, none, b.Send(1, none)) },
			func(b *Builder) { b.Send(0, none, b.Recv(2, none, b.Send(2, none, b.Recv(0, none)))) },
			func(b *Builder) { b.Send(1, none, b.Recv(1, none)) },
		}, ""},
		{"the same, and the middle does not wait for the end", []func(b *Builder){
			func(b *Builder) { b.Recv(1, none, b.Send(1, none)) },
			func(b *Builder) {
				got := b.Recv(0, none)
				b.Send(0, none, got)
				b.Recv(2, none, b.Send(2, none, got))
			},
			func(b *Builder) { b.Send(1, none, b.Recv(1, none)) },
		}, "sync: rank 0: it can end before rank 2 has begun"},
	} {
		t.Run(c.about, func(t *testing.T) {
			task := &Task{Sync: true, Ranks: make([]Memory, len(c.build))}
			wantFault(t, Validate(graphsBy(t, c.build...), task), c.want)
		})
	}
}
