package mpi

import (
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// Messages of different purposes in the context of collectives have different tags.
func TestTagsAreApart(t *testing.T) {
	others := []int32{blockingTag, releaseTag, teamTag, wakeTag, profileTag, checkTag, splitTag, groupTag, groupTag + groupTags - 1, madeTag, madeTag + madeTags - 1}
	for i, tag := range others {
		if slices.Contains(others[i+1:], tag) {
			t.Errorf("tag %d has two purposes", tag)
		}
	}
	const most = sched.Streams - 1
	for _, first := range []int32{startedTag, preparedTag} {
		for n := range int32(2*streamRows + 2) {
			low := streamsOf(first + n)
			for _, tag := range others {
				if tag >= low && tag <= low+most {
					t.Fatalf("collective %d with tag %d has streams %d to %d, and %d is another tag", n, first+n, low, low+most, tag)
				}
			}
		}
	}
	seen := map[[2]int32]bool{}
	tags := []int{0, 1, groupTags - 1, groupTags, 2 * groupTags, MaxTag - groupTags, MaxTag - 1, MaxTag}
	for rank := range 3 {
		for _, tag := range tags {
			source, in := asideEnvelope(rank, tag)
			if in < groupTag || in >= groupTag+groupTags || source < 0 {
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
