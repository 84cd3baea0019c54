// Package ofi brings libfabric under package rdma: InfiniBand, RoCE, iWARP
// adapters, EFA, Slingshot and Omni-Path where they are, TCP and UDP elsewhere.
//
// It is built with the tag ofi and cgo; in every other build [Open] says that it
// is missing. libfabric itself is opened at run time, so that a program built
// with the tag starts where it is not installed.
//
// A device sends messages and does RDMA with libfabric; it leaves libfabric's tag
// matching alone, because matching is done once for all devices. It has one
// transport: RD over endpoints that libfabric calls RDM, RC over MSG, UD over
// DGRAM. [Survey] lists what there is, which of it Open takes, and why.
//
// How a message travels. Each begins with a header of 16 bytes that names its
// sender and its job; what is of another job is dropped and counted. An inline
// body is copied into a registered buffer, another one is sent from where it is.
// Work that the provider does not take, mostly because the connection behind a
// first message does not stand yet, waits here, in order, and is offered again at
// each Poll. Messages arrive in buffers of the device's own, which a lending queue
// shows and any other copies from.
//
// What providers do that the rules of package rdma do not expect:
//
//   - A forbidden access moves nothing, but those over TCP report it as a peer that
//     is gone, because the target breaks the connection without a word, and
//     udp;ofi_rxd does not report it at all.
//   - A peer that dies is noticed when work for it fails. If it was never talked
//     to, or had nothing outstanding, that takes a probe of its socket over TCP, and
//     two minutes of vain attempts elsewhere; udp;ofi_rxd never notices.
//   - tcp;ofi_rxm takes some 70 MB for each device; net takes one.
package ofi
