//go:build !ofi || !cgo || !linux

package ofi

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Built reports whether this program was built with libfabric.
const Built = false

// Open returns ErrMissing in this build.
func Open(Config) (rdma.Device, error) {
	return nil, fmt.Errorf("%w: this program was built without it; build it with: CGO_ENABLED=1 go build -tags ofi", ErrMissing)
}

// Survey lists libfabric's offers, which of them Open would use, and why. version is that
// of libfabric.
func Survey(Config) (offers []Offer, version string, err error) {
	_, err = Open(Config{})
	return nil, "", err
}
