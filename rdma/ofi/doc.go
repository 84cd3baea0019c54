// Package ofi brings libfabric under package rdma: InfiniBand, RoCE, iWARP
// adapters, EFA, Slingshot and Omni-Path where they are, TCP and UDP elsewhere.
//
// It is built with the tag ofi and cgo; in every other build [Open] says that it
// is missing. libfabric itself is opened at run time, so that a program built
// with the tag starts where it is not installed.
//
// A device sends messages and does RDMA with libfabric; it leaves libfabric's tag
// matching alone, because matching is done once for all devices.
package ofi
