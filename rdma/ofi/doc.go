// Package ofi implements package rdma on libfabric: InfiniBand, RoCE, iWARP adapters, EFA,
// Slingshot and Omni-Path where available, TCP and UDP elsewhere.
//
// It is built with the tag ofi and cgo; in every other build [Open] returns [ErrMissing].
// libfabric itself is loaded at run time, so that a program built with the tag starts where it
// is not installed.
//
// A device uses libfabric's messages and RDMA, but not its tag matching, because matching is
// done once for all devices. It has one transport: RD over libfabric's RDM endpoints, RC over
// MSG, UD over DGRAM. [Survey] lists the offers, which of them Open uses, and why.
//
// The path of a message. Each begins with a header of 16 bytes that names its sender and its
// job; messages of another job are dropped and counted. An inline body is copied into a
// registered buffer, any other is sent in place. Work that the provider does not accept,
// mostly because the connection for a first message is not established yet, is queued in
// order and posted again at each Poll. Messages arrive in the device's own buffers, which a
// lending queue exposes and any other copies from.
//
// Provider behavior that deviates from the rules of package rdma:
//
//   - A forbidden access transfers nothing, but providers over TCP report it as a peer that is
//     gone, because the target breaks the connection without a reason, and udp;ofi_rxd does
//     not report it at all.
//   - A dead peer is noticed when work for it fails. If there was no communication with it, or
//     no outstanding work, that takes a probe of its socket over TCP, and two minutes of
//     failed attempts elsewhere; udp;ofi_rxd never notices.
//   - tcp;ofi_rxm uses some 70 MB for each device; net uses one.
package ofi
