package ofi

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/rdma"
)

// The published address of a queue pair: "ofi:RD:tcp+ofi_rxm:7:0200b8a4…" is the kind of
// queue pair, the provider, the number of the device, and libfabric's name of the
// endpoint. Launchers pass it on, and some of them cut values at a semicolon, hence the
// plus sign.

// maxIndex is the largest number of a device.
const maxIndex = 1<<24 - 1

// maxName is the length of the longest name of an endpoint.
const maxName = 128

type address struct {
	transport rdma.Transport
	provider  string
	index     int
	name      string // raw bytes
}

func (a address) text() rdma.Addr {
	return rdma.Addr(fmt.Sprintf("ofi:%s:%s:%d:%x", transportWord(a.transport), strings.ReplaceAll(a.provider, ";", "+"), a.index, a.name))
}

func parseAddress(text rdma.Addr) (address, error) {
	parts := strings.Split(string(text), ":")
	if len(parts) != 5 || parts[0] != "ofi" {
		return address{}, fmt.Errorf("%q is not the address of a libfabric device", text)
	}
	a := address{provider: strings.ReplaceAll(parts[2], "+", ";")}
	for _, kind := range []rdma.Transport{rdma.RC, rdma.RD, rdma.UD} {
		if transportWord(kind) == parts[1] {
			a.transport = kind
		}
	}
	index, err := strconv.ParseUint(parts[3], 10, 32)
	name, err2 := hex.DecodeString(parts[4])
	if a.transport == 0 || err != nil || index > maxIndex || err2 != nil || len(name) == 0 || len(name) > maxName {
		return address{}, fmt.Errorf("%q is not the address of a libfabric device: invalid kind, index or name", text)
	}
	a.index, a.name = int(index), string(name)
	return a, nil
}

func transportWord(kind rdma.Transport) string {
	switch kind {
	case rdma.RC:
		return "RC"
	case rdma.RD:
		return "RD"
	case rdma.UD:
		return "UD"
	}
	return "?"
}

// endpointWord returns libfabric's name of the endpoints of a transport.
func endpointWord(kind rdma.Transport) string {
	switch kind {
	case rdma.RC:
		return "MSG"
	case rdma.RD:
		return "RDM"
	}
	return "DGRAM"
}
