package engine

import (
	"slices"
	"testing"
)

// A tag has one purpose in its context. Tags of different contexts may be equal: matching
// compares the context first.
func TestTagsAreDistinct(t *testing.T) {
	for context, tags := range map[string][]int32{
		"collectives": {BlockingTag, ReleaseTag, StartedTag, PreparedTag, MadeTag, MadeTag + MadeTags - 1, StreamTag, LastTags,
			SplitTag, CheckTag, ProfileTag, noteReleased, noteFreed, noteWake, notePart, noteAgree, noteRevoke, noteLeft, noteAskAll, noteReply, noteAsk, noteBroken, WakeTag, TeamTag},
		"window": {requestTag, PostTag, CompleteTag, firstAnswer, lastAnswer},
	} {
		if !slices.IsSorted(tags) || len(slices.Compact(slices.Clone(tags))) != len(tags) {
			t.Errorf("the tags in the context of %s are %d; want them to increase, because the ranges between them must not overlap", context, tags)
		}
	}
}
