package netprobe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestParsePorts(t *testing.T) {
	for text, want := range map[string]Ports{"": {}, "7000-7099": {7000, 7099}, "80": {80, 80}, "1-65535": {1, 65535}} {
		if got, err := ParsePorts(text); err != nil || got != want {
			t.Errorf("%q is %v, got %v, %v", text, want, got, err)
		}
	}
	for _, text := range []string{"0", "x", "7-", "-7", "9-8", "1-65536", "1-2-3", "1,2"} {
		if _, err := ParsePorts(text); err == nil || !strings.Contains(err.Error(), "such as 7000-7099") {
			t.Errorf("%q must be refused with an example: %v", text, err)
		}
	}
}

func TestTryPorts(t *testing.T) {
	used := func(ports ...uint16) (tried *[]uint16, open func(uint16) error) {
		tried = new([]uint16)
		return tried, func(p uint16) error {
			*tried = append(*tried, p)
			if slices.Contains(ports, p) {
				return fmt.Errorf("bind to %d: %w", p, syscall.EADDRINUSE)
			}
			return nil
		}
	}
	for _, c := range []struct {
		ports Ports
		index int
		used  []uint16
		want  []uint16
	}{
		{Ports{}, 3, nil, []uint16{0}},
		{Ports{10, 12}, 0, nil, []uint16{10}},
		{Ports{10, 12}, 4, []uint16{11}, []uint16{11, 12}},
		{Ports{10, 12}, 2, []uint16{12}, []uint16{12, 10}},
		{Ports{65534, 65535}, 1, []uint16{65535}, []uint16{65535, 65534}},
	} {
		tried, open := used(c.used...)
		if err := c.ports.Try(c.index, open); err != nil || !slices.Equal(*tried, c.want) {
			t.Errorf("%v from index %d, with %v in use: tried %v, %v; want %v", c.ports, c.index, c.used, *tried, err, c.want)
		}
	}
	_, open := used(10, 11)
	if err := (Ports{10, 11}).Try(1, open); err == nil || !strings.Contains(err.Error(), "all 2 ports from 10 to 11 are in use") ||
		!strings.Contains(err.Error(), "bind to 11") {
		t.Errorf("a range without a free port must be reported with the error of the first port tried, 11: %v", err)
	}
	other := errors.New("no such address")
	if err := (Ports{10, 11}).Try(0, func(uint16) error { return other }); err != other {
		t.Errorf("another error must be returned at once: %v", err)
	}
}
