package mpi

import (
	"testing"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/sched"
)

// The streams of collectives have tags that no other message has. internal/engine checks
// that those of the others differ.
func TestTagsAreApart(t *testing.T) {
	others := []int32{engine.BlockingTag, engine.ReleaseTag, engine.TeamTag, engine.WakeTag, engine.ProfileTag, engine.CheckTag, engine.SplitTag, engine.MadeTag, engine.MadeTag + engine.MadeTags - 1}
	const most = sched.Streams - 1
	for _, first := range []int32{engine.StartedTag, engine.PreparedTag} {
		for n := range int32(2*engine.StreamRows + 2) {
			low := streamsOf(first + n)
			for _, tag := range others {
				if tag >= low && tag <= low+most {
					t.Fatalf("collective %d with tag %d has streams %d to %d, and %d is another tag", n, first+n, low, low+most, tag)
				}
			}
		}
	}
}

// Agreements that collide try different ids next: those on one communicator too, which only
// differ in the tag of CreateGroup or in the number of the Idup.
func TestCollisionsSpread(t *testing.T) {
	const ctx, id = 4, 100
	for attempt := range uint32(4) {
		next := map[uint32]bool{}
		for n := range uint32(16) {
			to := afterCollision(id, spread(ctx, n), attempt)
			if to <= id || to%2 != 0 || to > id+64 {
				t.Fatalf("after %d comes %d", id, to)
			}
			next[to] = true
		}
		if len(next) < 8 {
			t.Errorf("16 agreements try %d different ids in attempt %d", len(next), attempt)
		}
	}
}
