package sched

import "testing"

// TestValidateShared hands parts of a shared buffer over among three ranks, of which the
// first two share a node. All of them get the data of rank 0.
func TestValidateShared(t *testing.T) {
	task := func() *Task {
		task := &Task{Node: []int{0, 0, 1}}
		for r := range 3 {
			m := Memory{Out: 8, End: []Piece{{Span: out(0, 8), From: 0, To: 1}}}
			if r == 0 {
				m.In, m.Start = 8, []Piece{{Span: in(0, 8), From: 0, To: 1}}
			}
			task.Ranks = append(task.Ranks, m)
		}
		return task
	}
	none := Span{Buf: Shared}
	first := func(b *Builder) {
		s := b.AllocShared(8)
		put := b.Copy(s, in(0, 8))
		b.HandOver(1, s, put)
		b.Send(2, s, put)
		b.Copy(out(0, 8), s, put)
		b.TakeOver(1, none)
	}
	second := func(b *Builder) {
		s := b.AllocShared(8)
		b.HandOver(0, none)
		b.Copy(out(0, 8), s, b.TakeOver(0, s))
	}
	third := func(b *Builder) { b.Recv(0, out(0, 8)) }
	for _, c := range []struct {
		about string
		build []func(b *Builder)
		want  string
	}{
		{"correct", []func(b *Builder){first, second, third}, ""},
		{"read before it is taken over", []func(b *Builder){first, func(b *Builder) {
			s := b.AllocShared(8)
			b.HandOver(0, none)
			b.Copy(out(0, 8), s)
			b.TakeOver(0, s)
		}, third}, "race"},
		{"read and never taken over", []func(b *Builder){func(b *Builder) {
			s := b.AllocShared(8)
			put := b.Copy(s, in(0, 8))
			b.HandOver(1, none, put)
			b.Send(2, s, put)
			b.Copy(out(0, 8), s, put)
			b.TakeOver(1, none)
		}, func(b *Builder) {
			s := b.AllocShared(8)
			b.HandOver(0, none)
			b.Copy(out(0, 8), s, b.TakeOver(0, none))
		}, third}, "shared: rank 1, operation 2: copy shared[0:8) to out[0:8) reads bytes that the rank has neither written nor taken over"},
		{"written twice", []func(b *Builder){first, func(b *Builder) {
			s := b.AllocShared(8)
			b.HandOver(0, none)
			got := b.Copy(out(0, 8), s, b.TakeOver(0, s))
			b.Copy(s, out(0, 8), got)
		}, third}, "writes bytes that operation 0 of rank 0"},
		{"another span", []func(b *Builder){first, func(b *Builder) {
			s := b.AllocShared(16).At(8, 8)
			b.HandOver(0, none)
			b.Copy(out(0, 8), s, b.TakeOver(0, s))
		}, third}, "shared"},
		{"a message for a hand-over", []func(b *Builder){first, func(b *Builder) {
			b.AllocShared(8)
			b.HandOver(0, none)
			b.Recv(0, out(0, 8))
		}, third}, "only one of them is a hand-over"},
		{"another node", []func(b *Builder){func(b *Builder) {
			s := b.AllocShared(8)
			put := b.Copy(s, in(0, 8))
			b.HandOver(1, s, put)
			b.HandOver(2, s, put)
			b.Copy(out(0, 8), s, put)
			b.TakeOver(1, none)
		}, second, func(b *Builder) {
			s := b.AllocShared(8)
			b.Copy(out(0, 8), s, b.TakeOver(0, s))
		}}, "names a rank of another node"},
		{"it does not wait for the node", []func(b *Builder){func(b *Builder) {
			s := b.AllocShared(8)
			put := b.Copy(s, in(0, 8))
			b.HandOver(1, s, put)
			b.Send(2, s, put)
			b.Copy(out(0, 8), s, put)
		}, func(b *Builder) {
			s := b.AllocShared(8)
			b.Copy(out(0, 8), s, b.TakeOver(0, s))
		}, third}, "sync: rank 0: it can end before rank 1 has begun"},
		{"buffers of two sizes", []func(b *Builder){first, func(b *Builder) {
			s := b.AllocShared(8)
			b.AllocShared(64)
			b.HandOver(0, none)
			b.Copy(out(0, 8), s, b.TakeOver(0, s))
		}, third}, "another rank of its node"},
	} {
		t.Run(c.about, func(t *testing.T) {
			graphs := graphsBy(t, c.build...)
			wantFault(t, Validate(graphs, task()), c.want)
			for _, g := range graphs {
				again, err := parseText(g.String())
				if err != nil || len(again) != 1 || again[0].String() != g.String() || again[0].Shared != g.Shared {
					t.Errorf("parsed again: %v, %v; want\n%v", again, err, g)
				}
			}
		})
	}
}
