package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is a kind of fault.
type Fault string

// The faults. The first four kill processes, so a job must survive or end in order. The
// others end by themselves, and a job must not notice more than a delay.
const (
	KillRank     Fault = "rank"
	KillAgent    Fault = "agent"
	KillHost     Fault = "host"
	KillLauncher Fault = "launcher"

	Cut       Fault = "cut"
	Drop      Fault = "drop"
	Duplicate Fault = "duplicate"
	Corrupt   Fault = "corrupt"
	Delay     Fault = "delay"
	Rate      Fault = "rate"
	Stop      Fault = "stop"
	FillShm   Fault = "shm"
)

// Faults returns all faults in a fixed order.
func Faults() []Fault {
	return []Fault{KillRank, KillAgent, KillHost, KillLauncher, Cut, Drop, Duplicate, Corrupt, Delay, Rate, Stop, FillShm}
}

// Kills reports whether a fault ends processes.
func (f Fault) Kills() bool {
	return f == KillRank || f == KillAgent || f == KillHost || f == KillLauncher
}

// ParseFaults parses a list such as "rank,cut,drop". "all" selects all faults, "mild" those
// that kill nothing.
func ParseFaults(text string) ([]Fault, error) {
	var chosen []Fault
	for word := range strings.SplitSeq(text, ",") {
		switch word = strings.TrimSpace(word); {
		case word == "all":
			chosen = append(chosen, Faults()...)
		case word == "mild":
			chosen = append(chosen, slices.DeleteFunc(Faults(), Fault.Kills)...)
		case slices.Contains(Faults(), Fault(word)):
			chosen = append(chosen, Fault(word))
		default:
			var names []string
			for _, f := range Faults() {
				names = append(names, string(f))
			}
			return nil, fmt.Errorf("chaos: there is no fault %q: use all, mild, or a list of %s", word, strings.Join(names, ", "))
		}
	}
	var unique []Fault // the order of the list must not matter to the schedule
	for _, f := range Faults() {
		if slices.Contains(chosen, f) {
			unique = append(unique, f)
		}
	}
	return unique, nil
}

// Options selects what a schedule contains.
type Options struct {
	// Faults are the faults to choose from.
	Faults []Fault
	// Hosts and Rails are those of the lab.
	Hosts, Rails int
	// Duration is the time at which all faults have ended.
	Duration time.Duration
	// Every is the mean time between the begins of faults. Default 500ms.
	Every time.Duration
	// Longest is the longest time that a fault lasts. Default 2s: shorter than the time
	// after which a peer or a host counts as failed.
	Longest time.Duration
	// Kills is the number of faults that kill. Default 2.
	Kills int
}

// Event is a fault at a time.
type Event struct {
	// At is the time since the start at which it begins, and For how long it lasts.
	At, For time.Duration
	Fault   Fault
	// Host and Rail are where, numbered from 0.
	Host, Rail int
	// Amount is a share of packets, or a rate in bits per second.
	Amount float64
	// Pick selects one of several processes, and seeds decisions about single packets.
	Pick uint64
}

// String describes an event in the words of muster lab.
func (e Event) String() string {
	host := "h" + strconv.Itoa(e.Host+1)
	cable := host + " rail " + strconv.Itoa(e.Rail)
	share := strconv.FormatFloat(100*e.Amount, 'f', 1, 64) + "%"
	var what string
	switch e.Fault {
	case KillRank:
		what = "kill a rank"
	case KillAgent:
		what = "kill the agent of " + host
	case KillHost:
		what = "kill " + host
	case KillLauncher:
		what = "kill the launcher"
	case Stop:
		what = "stop a rank"
	case FillShm:
		what = "fill /dev/shm of " + host
	case Cut:
		what = "cut " + cable
	case Rate:
		what = fmt.Sprintf("rate %s %.0fmbit", cable, e.Amount/1e6)
	case Drop, Duplicate, Corrupt, Delay:
		what = fmt.Sprintf("%s %s %s", e.Fault, cable, share)
	}
	if e.For > 0 {
		what += " for " + e.For.String()
	}
	return fmt.Sprintf("%7.3fs  %s", e.At.Seconds(), what)
}

// Schedule returns the faults that follow from a seed, ordered by time. Two faults of the
// same kind never overlap at the same place, so that the end of one does not end the other.
// Corrupt and Delay share a queue of the kernel and count as one kind.
func Schedule(seed uint64, o Options) []Event {
	if len(o.Faults) == 0 || o.Hosts < 1 || o.Rails < 1 {
		return nil
	}
	if o.Every <= 0 {
		o.Every = 500 * time.Millisecond
	}
	if o.Longest <= 0 {
		o.Longest = 2 * time.Second
	}
	random := rand.New(rand.NewPCG(seed, 0x6d7573746572)) // "muster"
	mild := slices.DeleteFunc(slices.Clone(o.Faults), Fault.Kills)
	var events []Event
	kills := 0
	for at := time.Duration(0); ; {
		// Each event draws the same numbers, so that limits do not change later events.
		at += o.Every/2 + time.Duration(random.Int64N(int64(o.Every)))
		e := Event{
			At:    at.Round(time.Millisecond),
			Fault: choose(o.Faults, random.Uint64()),
			Host:  random.IntN(o.Hosts),
			Rail:  random.IntN(o.Rails),
			For:   (50*time.Millisecond + time.Duration(random.Int64N(int64(o.Longest)))).Round(time.Millisecond),
			Pick:  random.Uint64(),
		}
		level, other := random.Float64(), choose(mild, random.Uint64())
		if e.At >= o.Duration {
			return events
		}
		if e.Fault.Kills() && kills == o.Kills {
			e.Fault = other
		}
		e.For = min(e.For, o.Longest, o.Duration-e.At)
		e.Amount = e.Fault.amount(level)
		if e.Fault == "" || slices.ContainsFunc(events, e.collides) {
			continue
		}
		if e.Fault.Kills() {
			e.For = 0
			kills++
		}
		events = append(events, e)
	}
}

// choose returns one of the faults, or "" if there is none.
func choose(faults []Fault, random uint64) Fault {
	if len(faults) == 0 {
		return ""
	}
	return faults[random%uint64(len(faults))]
}

// amount returns the strength of a fault for a level of 0 to 1.
func (f Fault) amount(level float64) float64 {
	switch f {
	case Drop:
		return 0.001 + 0.2*level*level
	case Duplicate, Delay:
		return 0.01 + 0.5*level
	case Corrupt:
		return 0.001 + 0.1*level*level
	case Rate:
		return 1e6 * float64(10+int(level*490))
	}
	return 0
}

// collides reports whether an earlier event changes the same thing at the same time.
func (e Event) collides(earlier Event) bool {
	kind := func(f Fault) Fault {
		if f == Corrupt {
			return Delay
		}
		return f
	}
	return !e.Fault.Kills() && kind(e.Fault) == kind(earlier.Fault) && earlier.At+earlier.For >= e.At &&
		(e.Fault == Stop || e.Host == earlier.Host && (e.Fault == FillShm || e.Rail == earlier.Rail))
}
