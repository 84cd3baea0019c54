package mpi

import (
	"testing"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/sched"
)

// The streams of collectives have tags that no other message has. internal/engine checks
// that those of the others differ.
func TestTagsAreApart(t *testing.T) {
	others := []int32{engine.BlockingTag, engine.ReleaseTag, engine.TeamTag, engine.WakeTag, engine.ProfileTag, engine.CheckTag, engine.SplitTag, engine.GroupTag, engine.GroupTag + engine.GroupTags - 1, engine.MadeTag, engine.MadeTag + engine.MadeTags - 1}
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
	seen := map[[2]int32]bool{}
	tags := []int{0, 1, engine.GroupTags - 1, engine.GroupTags, 2 * engine.GroupTags, MaxTag - engine.GroupTags, MaxTag - 1, MaxTag}
	for rank := range 3 {
		for _, tag := range tags {
			source, in := asideEnvelope(rank, tag)
			if in < engine.GroupTag || in >= engine.GroupTag+engine.GroupTags || source < 0 {
				t.Errorf("CreateGroup on rank %d with tag %d uses source %d and tag %d", rank, tag, source, in)
			}
			seen[[2]int32{source, in}] = true
		}
	}
	if len(seen) != 3*len(tags) {
		t.Errorf("%d ranks and %d tags have %d envelopes", 3, len(tags), len(seen))
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
