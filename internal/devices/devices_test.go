package devices_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/devices"
	"github.com/muster-mpi/muster/mpi"
)

// Every name that is listed is found, once, and its settings are those of package mpi.
func TestNames(t *testing.T) {
	jobs := devices.JobNames()
	for i, name := range jobs {
		settings, ok := devices.JobSettings(name)
		if _, err := mpi.ConfigFromEnv(settings); !ok || err != nil || slices.Contains(jobs[:i], name) {
			t.Errorf("%s: %v %v %v", name, settings, ok, err)
		}
	}
	verbs, docs := devices.VerbsNames()
	for i, name := range verbs {
		d, c, ok := devices.FindVerbs(name, netip.MustParseAddr("127.0.0.1"))
		if !ok || !strings.HasPrefix(name, d.Name) || c.Type != d.Type || d.Open == nil || docs[i] == "" || slices.Contains(verbs[:i], name) {
			t.Errorf("%s is %+v with %+v, %q", name, d, c, docs[i])
		}
	}
	for _, name := range []string{"", "rd-", "rd-few", "shm-strict", "ofi-net", "rdd"} {
		if settings, ok := devices.JobSettings(name); ok {
			t.Errorf("%q has settings %v", name, settings)
		}
	}
	for _, name := range []string{"", "rd-", "rd-tls", "ofi", "rd:net", "rd-nocrc:net"} {
		if d, _, ok := devices.FindVerbs(name, netip.Addr{}); ok {
			t.Errorf("%q is %s", name, d.Name)
		}
	}
}
