// Package rdma defines the provider interface of Muster: the operations that a fabric
// must offer so that message passing can be built on it. The terms are those of RDMA
// verbs.
//
// A [Device] is one opened rail with one protection domain. Memory that peers may access
// is registered with the device and identified by an [MR]. A [QP] (queue pair) carries
// work requests: a [SendWR] sends a message or transfers memory. The outcome of a work
// request, like every received message, is reported as a [Completion] by a [CQ]
// (completion queue).
//
// A message consists of a short Head, which is part of the work request and is copied
// when the request is posted, and a Body anywhere in memory. The receiver sees both as one
// contiguous message. Receives come from a shared receive queue, [SRQ]. It either holds
// buffers that the user posted or, if it was made with Lend, exposes each message in the
// device's own buffer until the next Poll.
//
// Transports:
//
//   - RC: connected, reliable, ordered. One peer per QP.
//   - RD: connectionless, reliable, ordered per peer. Each work request names its peer
//     by a [PeerID] that [Device.Resolve] returned.
//   - UD: connectionless, neither reliable nor ordered. Remote memory is written by
//     OpWriteRecord. Parts of a Write-Record may be lost; the target's completions report
//     which parts arrived.
//
// Rules for all devices, checked by package rdmatest:
//
//   - PostSend and PostRecv never block. They accept a prefix of the list, in order, and
//     return its length. ErrAgain is not a failure: the caller posts the rest again after
//     a Poll.
//   - Work requests, including the Head, belong to the caller again when the call returns.
//     The Body belongs to the device until the completion. With Inline the device has
//     copied the Body when the call returns, and success generates no completion.
//   - Between two peers of a reliable transport, messages arrive exactly once and in the
//     order in which they were posted. A Write or Read is ordered only before its own
//     completion.
//   - An access outside a registered region, with a wrong key, without the required access
//     right, or after Deregister transfers no byte and completes with StatusRemoteAccess.
//   - Several goroutines may use a device if the caller serializes the calls. Any goroutine
//     may call Wake at any time. While one goroutine is in Wait, another may call
//     everything except Poll and Close.
//   - Wait returns when a message or completion has arrived, when a post that returned
//     ErrAgain may succeed, after Wake, and when the timeout has passed, which is not an
//     error.
//   - Of the requests that a device has accepted, only an OpPush may wait for the peer's
//     application: it completes when the peer posts OpPull, which may never happen. All
//     other requests complete as long as the peers' queues are polled. An OpPush therefore
//     does not count against the depth of the queue pair and does not delay requests
//     posted after it. A device accepts Attr.MaxPush of them at a time and returns
//     ErrAgain for more. A caller that exceeds MaxPush delays the requests that follow.
//   - Deregister of a region with an open OpPush ends that OpPush with a status other than
//     StatusOK. All 64 bits of a key are significant.
//   - A closed object returns ErrClosed. Closing it again has no effect.
package rdma
