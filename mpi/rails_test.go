package mpi

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-mpi/muster/internal/netprobe"
)

// A host whose only interface is coming up waits for it, and no other host waits.
func TestInterfacesThatComeUp(t *testing.T) {
	prefix := []netip.Prefix{netip.MustParsePrefix("10.1.0.2/24")}
	lo := netprobe.Interface{Name: "lo", Up: true, Running: true, Loopback: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}
	up := netprobe.Interface{Name: "eth0", Up: true, Running: true, Prefixes: prefix}
	down, unplugged, bare := up, up, up
	down.Up, down.Running, unplugged.Running, bare.Prefixes = false, false, false, nil
	other := up
	other.Name, other.Prefixes = "eth1", []netip.Prefix{netip.MustParsePrefix("10.2.0.2/24")}
	for _, v := range []struct {
		name    string
		channel string
		named   string
		apart   bool
		first   []netprobe.Interface // for 300 ms
		waits   bool
		rail    string // selected, or possible
	}{
		{"down", "", "", true, []netprobe.Interface{lo, down}, true, "eth0"},
		{"no address", "", "", true, []netprobe.Interface{lo, bare}, true, "eth0"},
		{"no carrier: it is probed", "hybrid", "", true, []netprobe.Interface{lo, unplugged}, false, "eth0"},
		{"no carrier, without probes", "rc", "", true, []netprobe.Interface{lo, unplugged}, true, "eth0"},
		{"named", "", "eth0", true, []netprobe.Interface{lo, unplugged}, true, "eth0"},
		{"another is up", "", "", true, []netprobe.Interface{lo, down, other}, false, "eth1"},
		{"up", "", "", true, []netprobe.Interface{lo, up}, false, "eth0"},
		{"one host", "", "", false, []netprobe.Interface{lo, down}, false, "lo"},
		{"loopback only", "rc", "", true, []netprobe.Interface{lo}, false, "lo"},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			list, err := chooseFrom(func() ([]netprobe.Interface, error) {
				if time.Since(began) < 300*time.Millisecond {
					return v.first, nil
				}
				return []netprobe.Interface{lo, up}, nil
			}, &Config{Channel: v.channel, Interface: v.named}, v.apart)
			if err != nil {
				t.Fatalf("%s: %v", v.name, err)
			}
			found := false
			for _, c := range list {
				found = found || c.Name == v.rail && (c.Taken || c.Possible)
			}
			took := time.Since(began)
			if !found || v.waits != (took >= 300*time.Millisecond) || took > 400*time.Millisecond {
				t.Errorf("%s: after %v the interfaces are %+v; want %s", v.name, took, list, v.rail)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, _ = chooseFrom(func() ([]netprobe.Interface, error) { return []netprobe.Interface{lo, down}, nil }, &Config{}, true)
		if took := time.Since(began); took < interfaceTimeout || took > 2*interfaceTimeout {
			t.Errorf("an interface that stays down is waited for %v, want %v", took, interfaceTimeout)
		}
	})
}
