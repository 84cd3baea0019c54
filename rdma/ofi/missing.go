//go:build !ofi || !cgo || !linux

package ofi

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Built reports whether this program was built with libfabric.
const Built = false

// Open opens a device. This build has none.
func Open(Config) (rdma.Device, error) {
	return nil, fmt.Errorf("%w: this program was built without it; build it with: CGO_ENABLED=1 go build -tags ofi", ErrMissing)
}

// Survey lists what libfabric offers, what Open would take, and why. version is
// that of libfabric.
func Survey(Config) (offers []Offer, version string, err error) {
	_, err = Open(Config{})
	return nil, "", err
}
