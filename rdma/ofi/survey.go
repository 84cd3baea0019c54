//go:build ofi && cgo && linux

package ofi

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Survey lists libfabric's offers, which of them Open would use, and why. version is that
// of libfabric.
func Survey(cfg Config) (list []Offer, version string, err error) { return survey(cfg, libraryName) }

// survey queries the library of that name.
func survey(cfg Config, name string) (list []Offer, version string, err error) {
	lib, err := load(cfg, name)
	if err != nil {
		return nil, "", err
	}
	defer lib.free()
	major, minor := lib.version()
	version = fmt.Sprintf("%d.%d", major, minor)
	if cfg.Transport == 0 {
		cfg.Transport = rdma.RD
	}
	h := thisHost()
	for _, kind := range []rdma.Transport{rdma.RD, rdma.RC, rdma.UD} {
		found, err := lib.offers(cfg.Provider, kind, false)
		if err != nil {
			return list, version, fmt.Errorf("ofi: libfabric cannot list its offers: %w", err)
		}
		list = append(list, explain(found.list, kind, cfg, h)...)
		found.free()
	}
	return list, version, nil
}
