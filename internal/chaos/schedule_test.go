package chaos

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestScheduleFollowsFromSeed(t *testing.T) {
	o := Options{Faults: Faults(), Hosts: 3, Rails: 2, Duration: 30 * time.Second, Kills: 2}
	if a, b := Schedule(7, o), Schedule(7, o); !reflect.DeepEqual(a, b) {
		t.Errorf("the same seed gives two schedules:\n%v\n%v", a, b)
	}
	if reflect.DeepEqual(Schedule(7, o), Schedule(8, o)) {
		t.Error("two seeds give the same schedule")
	}
	// A printed seed must mean the same in later versions.
	var lines []string
	for _, e := range Schedule(7, Options{Faults: Faults(), Hosts: 3, Rails: 2, Duration: 3 * time.Second, Kills: 1}) {
		lines = append(lines, e.String())
	}
	want := `  0.394s  kill h1
  0.740s  cut h3 rail 0 for 1.214s
  1.158s  stop a rank for 1.181s
  1.443s  delay h2 rail 0 19.1% for 1.557s
  2.031s  drop h1 rail 0 18.3% for 969ms
  2.346s  stop a rank for 654ms
  2.712s  delay h1 rail 0 33.0% for 288ms`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("seed 7 gives\n%s\nwant\n%s", got, want)
	}
}

func TestScheduleKeepsItsLimits(t *testing.T) {
	seen := map[Fault]bool{}
	for seed := range uint64(300) {
		o := Options{Faults: Faults(), Hosts: 1 + int(seed%4), Rails: 1 + int(seed%2), Duration: 20 * time.Second, Kills: int(seed % 3), Every: 200 * time.Millisecond, Longest: time.Second}
		events := Schedule(seed, o)
		if !slices.IsSortedFunc(events, func(a, b Event) int { return int(a.At - b.At) }) {
			t.Fatalf("seed %d: not in order", seed)
		}
		kills := 0
		for i, e := range events {
			seen[e.Fault] = true
			switch {
			case e.At+e.For > o.Duration || e.For > o.Longest || e.For < 0:
				t.Errorf("seed %d: %v lasts beyond the limits", seed, e)
			case e.Host >= o.Hosts || e.Rail >= o.Rails:
				t.Errorf("seed %d: %v is not in the lab", seed, e)
			case e.Fault.Kills() != (e.For == 0):
				t.Errorf("seed %d: %v lasts %v", seed, e, e.For)
			}
			if e.Fault.Kills() {
				kills++
			} else if slices.ContainsFunc(events[:i], e.collides) {
				t.Errorf("seed %d: %v collides with an earlier one", seed, e)
			}
			if share := e.Fault == Drop || e.Fault == Duplicate || e.Fault == Corrupt || e.Fault == Delay; share && (e.Amount <= 0 || e.Amount > 1) {
				t.Errorf("seed %d: %v has the share %v", seed, e, e.Amount)
			}
		}
		if kills > o.Kills {
			t.Errorf("seed %d: %d kills, want at most %d", seed, kills, o.Kills)
		}
	}
	if len(seen) != len(Faults()) {
		t.Errorf("only %v occur", seen)
	}
}

func TestParseFaults(t *testing.T) {
	for text, want := range map[string][]Fault{
		"all":           Faults(),
		"mild":          {Cut, Drop, Duplicate, Corrupt, Delay, Rate, Stop, FillShm},
		"drop, rank":    {KillRank, Drop},
		"stop,mild,cut": {Cut, Drop, Duplicate, Corrupt, Delay, Rate, Stop, FillShm},
		"":              nil,
		"fire":          nil,
	} {
		got, err := ParseFaults(text)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
}
