package p2p

// Explores every order of events of small programs: explore_grammar_test.go generates the
// programs, explore_run_test.go defines the events and invariants, and
// explore_search_test.go searches. The short sets always run; the complete ones with
// -explore.full.

import (
	"flag"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
)

var exploreFull = flag.Bool("explore.full", false, "explore the complete sets of programs (minutes)")

// set is a set of programs and the settings in which they are run.
type set struct {
	name     string
	short    bool // also without -explore.full
	grammars []grammar
	dress    dress
	// settings for programs that have a rendezvous; the others are run once for
	// each that differs in more than the protocol.
	settings []setting
}

// by is a setting for each rendezvous protocol.
func by(variants ...setting) (out []setting) {
	for _, v := range variants {
		for _, r := range Rendezvous() {
			v.rendezvous = r
			out = append(out, v)
		}
	}
	return out
}

var (
	inOrder  = setting{}
	reorder  = setting{reorder: true}
	slow     = setting{slow: true}
	slowAny  = setting{slow: true, reorder: true}
	tags     = []int{0, 1}
	tagsAny  = []int{0, 1, AnyTag}
	allBlock = []blocking{blockNone, blockAll, blockSends, blockRecvs}
	syncBoth = [][]bool{{false}, {true}}
)

func pairOf(messages int, anySource bool) grammar {
	return grammar{ranks: 2, messages: messages, alphabet: everyone(2, tags, tagsAny, anySource)}
}

var exploreSets = []set{
	{name: "one rank, 1 and 2 messages to itself", short: true,
		grammars: []grammar{{ranks: 1, messages: 1, alphabet: everyone(1, tags, tagsAny, true)}, {ranks: 1, messages: 2, alphabet: everyone(1, tags, tagsAny, true)}},
		dress:    dress{sizes: product(sizeEmpty, sizeShort, sizeSegment, sizeLong), sync: syncBoth, blocks: []blocking{blockNone, blockRecvs}},
		settings: by(inOrder, slow)},
	{name: "two ranks, 1 and 2 messages", short: true,
		grammars: []grammar{pairOf(1, true), pairOf(2, true)},
		dress:    dress{sizes: product(sizeShort, sizeSegment, sizeLong), sync: syncBoth, blocks: []blocking{blockNone, blockAll}},
		settings: by(inOrder, reorder, slow)},
	{name: "two ranks, 1 and 2 messages, empty ones too, all modes and stays calls",
		grammars: []grammar{pairOf(1, true), pairOf(2, true)},
		dress:    dress{sizes: product(sizeEmpty, sizeShort, sizeSegment, sizeLong), sync: every(2), blocks: allBlock},
		settings: by(inOrder, reorder, slow, slowAny)},
	{name: "two ranks, 1 and 2 messages, receives with too little room", short: true,
		grammars: []grammar{pairOf(1, true), pairOf(2, true)},
		dress:    dress{sizes: product(sizeShort, sizeSegment, sizeLong), sync: syncBoth, rooms: []int8{0, 2, 5, 10}},
		settings: by(inOrder)},
	{name: "two ranks, 1 and 2 messages, a packet comes twice", short: true,
		grammars: []grammar{pairOf(1, true), pairOf(2, true)},
		dress:    dress{sizes: product(sizeShort, sizeSegment, sizeLong), sync: syncBoth},
		settings: by(setting{double: true})},
	{name: "two ranks, 1 and 2 messages, a packet comes twice, in any order",
		grammars: []grammar{pairOf(1, true), pairOf(2, true)},
		dress:    dress{sizes: product(sizeShort, sizeSegment, sizeLong), sync: syncBoth},
		settings: by(setting{double: true, reorder: true})},
	{name: "two ranks, 1 and 2 messages, local keys and sends with state", short: true,
		grammars: []grammar{pairOf(1, true), pairOf(2, true)},
		dress:    dress{sizes: product(sizeShort, sizeSegment, sizeLong), sync: syncBoth, blocks: []blocking{blockNone, blockAll}},
		settings: by(setting{localKeys: true, plain: true, slow: true})},
	{name: "two ranks, 1 and 2 messages, long ones cut into several transfers", short: true,
		grammars: []grammar{pairOf(1, true), pairOf(2, true)},
		dress:    dress{sizes: product(sizeShort, sizeLong), sync: syncBoth},
		settings: by(setting{transfer: 5}, setting{transfer: 5, slow: true, localKeys: true})},
	{name: "two ranks, 3 messages, every mix of sizes",
		grammars: []grammar{pairOf(3, false)},
		dress:    dress{sizes: product(sizeShort, sizeSegment, sizeLong)},
		settings: by(inOrder, reorder)},
	{name: "two ranks, 3 messages, slow devices",
		grammars: []grammar{pairOf(3, false)},
		dress:    dress{sizes: patterns([]int8{sizeShort}, []int8{sizeSegment}, []int8{sizeLong})},
		settings: by(slow)},
	{name: "two ranks, 3 messages, any source",
		grammars: []grammar{pairOf(3, true)},
		dress:    dress{sizes: patterns([]int8{sizeShort}, []int8{sizeLong}, []int8{sizeLong, sizeShort})},
		settings: by(inOrder)},
	{name: "two ranks, 3 messages, modes and stays calls",
		grammars: []grammar{pairOf(3, false)},
		dress: dress{sizes: patterns([]int8{sizeShort}, []int8{sizeLong}, []int8{sizeLong, sizeSegment}, []int8{sizeSegment, sizeLong}),
			sync: every(3), blocks: allBlock},
		settings: by(inOrder)},
	{name: "two ranks, 3 messages, little credit", short: true,
		grammars: []grammar{pairOf(3, false)},
		dress:    dress{sizes: patterns([]int8{sizeShort}, []int8{sizeSegment})},
		settings: by(setting{credit: 150}, setting{credit: 300})},
	{name: "two ranks send 3 messages to a third, which shares its credit", short: true,
		grammars: []grammar{{ranks: 3, messages: 3, alphabet: fanIn(3, []int{0}, [][2]int{{0, 0}, {1, 0}, {AnySource, 0}})}},
		dress:    dress{sizes: patterns([]int8{sizeShort}, []int8{sizeSegment})},
		settings: by(setting{credit: 600, shared: true})},
	{name: "two ranks send 4 messages to a third, which shares its credit",
		grammars: []grammar{{ranks: 3, messages: 4, alphabet: fanIn(3, tags, fanPatterns)}},
		dress:    dress{sizes: patterns([]int8{sizeShort})},
		settings: by(setting{credit: 600, shared: true}, setting{credit: 600, shared: true, reorder: true}, setting{credit: 1200, shared: true})},
	{name: "one rank sends 4 messages to another, queues of 1, received in any order", short: true,
		grammars: []grammar{{ranks: 2, messages: 4, alphabet: fanIn(2, tags, [][2]int{{0, 0}, {0, 1}})}},
		dress:    dress{sizes: patterns([]int8{sizeLong, sizeLong, sizeLong, sizeShort}), blocks: []blocking{blockRecvs}},
		settings: by(setting{depth: 1})},
	{name: "two ranks, 2 messages, queues of 1", short: true,
		grammars: []grammar{pairOf(2, false)},
		dress:    dress{sizes: product(sizeShort, sizeLong), sync: syncBoth, blocks: allBlock},
		settings: by(setting{depth: 1})},
	{name: "two ranks, 2 messages, one and two registrations", short: true,
		grammars: []grammar{pairOf(2, false)},
		dress:    dress{sizes: product(sizeShort, sizeLong), sync: syncBoth, blocks: []blocking{blockNone, blockAll}},
		settings: by(setting{regions: 1}, setting{regions: 2}, setting{regions: 2, localKeys: true})},
	{name: "two ranks, 3 messages, one and two registrations",
		grammars: []grammar{pairOf(3, false)},
		dress:    dress{sizes: patterns([]int8{sizeLong}, []int8{sizeLong, sizeShort}), blocks: allBlock},
		settings: by(setting{regions: 1}, setting{regions: 2}, setting{regions: 1, depth: 1})},
	{name: "one rank sends 4 messages to another, queues of 1 and 2, received in any order",
		grammars: []grammar{{ranks: 2, messages: 4, alphabet: fanIn(2, tags, [][2]int{{0, 0}, {0, 1}})}},
		dress:    dress{sizes: patterns([]int8{sizeLong}, []int8{sizeLong, sizeLong, sizeLong, sizeShort}), blocks: []blocking{blockNone, blockRecvs}},
		settings: by(setting{depth: 1}, setting{depth: 2}, setting{depth: 2, credit: 300})},
	{name: "two ranks, 3 messages, queues of 1 and 2",
		grammars: []grammar{pairOf(3, false)},
		dress:    dress{sizes: patterns([]int8{sizeLong}, []int8{sizeLong, sizeShort}), sync: syncBoth, blocks: []blocking{blockNone, blockRecvs}},
		settings: by(setting{depth: 1}, setting{depth: 2})},
	{name: "one rank sends 3 messages to another, queues of 1 and 2, wildcards, slow devices, out of order",
		grammars: []grammar{{ranks: 2, messages: 3, alphabet: fanIn(2, tags, [][2]int{{0, 0}, {0, 1}, {0, AnyTag}, {AnySource, AnyTag}})}},
		dress:    dress{sizes: patterns([]int8{sizeLong}, []int8{sizeLong, sizeSegment}), blocks: allBlock},
		settings: by(setting{depth: 1, reorder: true}, setting{depth: 2, slow: true})},
	{name: "two ranks, 4 short messages",
		grammars: []grammar{pairOf(4, false)},
		dress:    dress{sizes: patterns([]int8{sizeShort})},
		settings: by(inOrder)},
	{name: "one rank sends 4 messages to another",
		grammars: []grammar{{ranks: 2, messages: 4, alphabet: fanIn(2, tags, [][2]int{{0, 0}, {0, 1}, {0, AnyTag}, {AnySource, AnyTag}})}},
		dress:    dress{sizes: patterns([]int8{sizeSegment}, []int8{sizeLong}, []int8{sizeLong, sizeShort})},
		settings: by(inOrder)},
	{name: "three ranks, 2 messages", short: true,
		grammars: []grammar{{ranks: 3, messages: 2, alphabet: everyone(3, tags, tagsAny, true)}},
		dress:    dress{sizes: patterns([]int8{sizeShort}, []int8{sizeLong}, []int8{sizeLong, sizeSegment}), blocks: []blocking{blockNone, blockAll}},
		settings: by(inOrder)},
	{name: "three ranks, 2 messages, every mix of sizes, modes and stays calls",
		grammars: []grammar{{ranks: 3, messages: 2, alphabet: everyone(3, tags, tagsAny, true)}},
		dress:    dress{sizes: product(sizeShort, sizeSegment, sizeLong), sync: syncBoth, blocks: allBlock},
		settings: by(inOrder, reorder, slow)},
	{name: "three ranks, 3 messages, any source",
		grammars: []grammar{{ranks: 3, messages: 3, alphabet: everyone(3, []int{0}, []int{0}, true)}},
		dress: dress{sizes: patterns([]int8{sizeShort}, []int8{sizeLong}, []int8{sizeLong, sizeShort}, []int8{sizeSegment, sizeLong}),
			blocks: allBlock},
		settings: by(inOrder)},
	{name: "two ranks send 3 messages to a third, mixed tags and sources",
		grammars: []grammar{{ranks: 3, messages: 3, alphabet: fanIn(3, tags, fanPatterns)}},
		dress:    dress{sizes: patterns([]int8{sizeShort}, []int8{sizeLong}, []int8{sizeLong, sizeShort})},
		settings: by(inOrder)},
	{name: "two ranks send 4 messages to a third, mixed tags and sources",
		grammars: []grammar{{ranks: 3, messages: 4, alphabet: fanIn(3, tags, fanPatterns)}},
		dress:    dress{sizes: patterns([]int8{sizeShort})},
		settings: by(inOrder)},
	{name: "three ranks, 4 messages, any source",
		grammars: []grammar{{ranks: 3, messages: 4, alphabet: everyone(3, []int{0}, []int{0}, true), most: 3}},
		dress:    dress{sizes: patterns([]int8{sizeShort})},
		settings: by(inOrder)},
}

var fanPatterns = [][2]int{{0, 0}, {0, 1}, {0, AnyTag}, {1, 0}, {1, 1}, {1, AnyTag}, {AnySource, 0}, {AnySource, 1}, {AnySource, AnyTag}}

func TestExplore(t *testing.T) { exploreAll(t, exploreSets) }

func exploreAll(t *testing.T, sets []set) (total tally) {
	if race.Enabled {
		t.Skip("the race detector has nothing to find in a machine without goroutines, and takes ten times as long")
	}
	for _, set := range sets {
		if !set.short && !*exploreFull {
			continue
		}
		t.Run(set.name, func(t *testing.T) {
			start := time.Now()
			sum := set.explore(t)
			total.add(sum)
			t.Logf("%v; %.1f s", sum, time.Since(start).Seconds())
		})
	}
	t.Logf("together: %v", total)
	return total
}

// explore runs a set.
func (s set) explore(t *testing.T) (sum tally) {
	searchers := make([]searcher, len(s.settings))
	seen := map[uint64]bool{}
	for _, g := range s.grammars {
		g.shapes(func(shape program) {
			s.dress.clothe(shape, g.messages, func(p program, allowed map[outcome]bool) {
				key := p.canonical()
				if seen[key] {
					return
				}
				seen[key] = true
				long := p.hasLong() || s.settings[0].credit > 0
				for i, setting := range s.settings {
					if !long && setting.rendezvous != "get" {
						continue
					}
					tal, failure := searchers[i].explore(p, setting, allowed)
					if failure != "" {
						t.Fatal(failure)
					}
					sum.add(tal)
				}
			})
		})
	}
	if sum.programs == 0 || sum.outcomes == 0 {
		t.Fatal("the set is empty")
	}
	return sum
}
