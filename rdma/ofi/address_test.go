package ofi

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

func TestAddressRoundTrip(t *testing.T) {
	for _, a := range []address{
		{rdma.RD, "net", 0, "\x02\x00\x1f\x90\x7f\x00\x00\x01"},
		{rdma.RC, "tcp;ofi_rxm", maxIndex, strings.Repeat("\xff", maxName)},
		{rdma.UD, "udp", 7, "\x00"},
	} {
		text := a.text()
		if strings.ContainsAny(string(text), " ;=\n\t") {
			t.Errorf("%q has characters that launchers do not pass on", text)
		}
		if back, err := parseAddress(text); err != nil || back != a {
			t.Errorf("%q is parsed as %+v, %v; it was %+v", text, back, err, a)
		}
	}
}

func TestInvalidAddresses(t *testing.T) {
	for _, text := range []rdma.Addr{
		"", "nonsense", "::::", "ofi:RD:net:1", "ofi:RD:net:1:", "ofi:RD:net:-1:00", "ofi:RD:net:16777216:00", "ofi:RD:net:1:0",
		"ofi:XX:net:1:00", "shm:RD:net:1:00", "ofi:RD:net:1:00:00", "ofi:RD:net:1:zz", rdma.Addr("ofi:RD:net:1:" + strings.Repeat("00", maxName+1)),
	} {
		if a, err := parseAddress(text); err == nil {
			t.Errorf("%q is parsed as %+v", text, a)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("ofi:RD:net:1:0200")
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := parseAddress(rdma.Addr(text)); err == nil {
			if back, err := parseAddress(a.text()); err != nil || back != a {
				t.Errorf("%q is parsed as %+v, whose text is parsed as %+v, %v", text, a, back, err)
			}
		}
	})
}
