package lab

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// pourRate sends bytes to a server and returns the rate in bits per second. An echo server
// fills both directions of the cable.
func pourRate(t *testing.T, l *Lab, from, addr string, size int) float64 {
	t.Helper()
	out := result(t, l, from, "pour", addr, "LAB_TEST_SIZE="+strconv.Itoa(size))
	seconds, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil {
		t.Fatalf("pouring from %s took %q", from, out)
	}
	return 8 * float64(size) / seconds
}

func TestRate(t *testing.T) {
	const rate, size = 20e6, 1 << 20 // four tenths of a second
	l := New(t, Config{Rate: "20mbit"})
	a, b := l.Hosts()[0], l.Hosts()[1]
	startEcho(t, l, a, ":7000")
	best := 0.0
	// On a busy machine a transfer may be late, but none is ever early.
	for range 40 {
		got := pourRate(t, l, b, l.Addr(a, 0)+":7000", size)
		if got > 1.05*rate {
			t.Errorf("a cable of 20 Mbit/s carried %.1f", got/1e6)
		}
		if best = max(best, got); best > 0.7*rate {
			break
		}
	}
	if best < 0.7*rate {
		t.Errorf("a cable of 20 Mbit/s carried at most %.1f", best/1e6)
	}
	t.Logf("%.1f Mbit/s", best/1e6)
	if err := l.Rate(a, EveryRail, ""); err != nil {
		t.Fatal(err)
	}
	if err := l.Rate(b, EveryRail, ""); err != nil {
		t.Fatal(err)
	}
	best = 0
	for range 5 {
		best = max(best, pourRate(t, l, b, l.Addr(a, 0)+":7000", size))
	}
	if best < 2*rate {
		t.Errorf("without a limit only %.1f Mbit/s", best/1e6)
	}
}

// TestRateOfOneMessage: a message after a pause is not faster than the cable either.
func TestRateOfOneMessage(t *testing.T) {
	const rate, size = 1e9, 128 << 10 // a millisecond
	l := New(t, Config{Rate: "1gbit"})
	a, b := l.Hosts()[0], l.Hosts()[1]
	startServer(t, l, a, "swallow", ":7000")
	best := 0.0
	for range 5 {
		best = max(best, pourRate(t, l, b, l.Addr(a, 0)+":7000", size))
	}
	// The bucket is a seventh of the message.
	if best > 1.25*rate {
		t.Errorf("a cable of 1 Gbit/s carried a message of %d KB at %.2f", size>>10, best/1e9)
	}
	t.Logf("%.0f Mbit/s", best/1e6)
}

func TestRateOfSeveralSenders(t *testing.T) {
	const rate, size = 20e6, 1 << 19
	l := New(t, Config{Hosts: 3})
	hosts := l.Hosts()
	if err := l.Rate(hosts[0], 0, "20mbit"); err != nil {
		t.Fatal(err)
	}
	startServer(t, l, hosts[0], "swallow", ":7000")
	var all sync.WaitGroup
	start := time.Now()
	for _, from := range hosts[1:] {
		all.Go(func() { pourRate(t, l, from, l.Addr(hosts[0], 0)+":7000", size) })
	}
	all.Wait()
	if both := 8 * 2 * size / time.Since(start).Seconds(); both > 1.05*rate {
		t.Errorf("a cable of 20 Mbit/s carried %.1f from two hosts together", both/1e6)
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]int64{
		"1gbit": 1e9, "2.5Gbit": 25e8, "100mbit": 1e8, "100kbit": 1e5, "1000000bit": 1e6, " 40gbit ": 4e10,
		"": 0, "1": 0, "gbit": 0, "-1gbit": 0, "1gb": 0, "0mbit": 0, "1kbit": 0, "500gbit": 0, "NaNgbit": 0, "fast": 0,
	} {
		got, err := ParseRate(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
		if err == nil {
			if again, err := ParseRate(FormatRate(got)); again != got || err != nil {
				t.Errorf("%d is written as %s and read as %d, %v", got, FormatRate(got), again, err)
			}
		}
	}
}
