// Package rdma is the provider interface of Muster: what a fabric must offer
// so that messages can be built on it. The words are those of RDMA verbs.
//
// A [Device] is one opened rail and one protection domain. Memory that a peer
// may reach is registered with it and named by an [MR]. A [QP] carries work: a
// [SendWR] sends a message or moves memory, and its outcome, like every message
// that arrives, comes back as a [Completion] from a [CQ].
//
// A message consists of a short Head, which travels inside the work request and
// is copied when it is posted, and a Body anywhere in memory. The receiver sees
// the two as one piece. Receives are taken from a shared receive queue, [SRQ],
// which either holds buffers that the user posted or, if it was made with Lend,
// shows the message where the device has it, until the next Poll.
//
// Transports:
//
//   - RC: connected, reliable, ordered. One peer per QP.
//   - RD: connection-less, reliable, ordered per peer. The peer is named in
//     each work request by a [PeerID] that [Device.Resolve] gave out.
//   - UD: connection-less, neither reliable nor ordered. Memory is reached by
//     OpWriteRecord, of which parts may be lost; the target is told which.
//
// Rules for all devices, checked by package rdmatest:
//
//   - PostSend and PostRecv never block. They take a prefix of what they are
//     given, in order, and say how many; ErrAgain means that nothing is wrong
//     and the rest should be offered again after a Poll.
//   - Work requests belong to the caller again when the call returns, with the
//     Head. The Body belongs to the device until the completion, except when
//     Inline is set: then it has been copied, and a success makes no completion.
//   - Between two peers of a reliable transport, messages arrive once and in the
//     order in which they were posted. A Write or Read is ordered with nothing
//     but its own completion.
//   - An access outside a registered region, with a wrong key, with a right that
//     was not given, or after Deregister, moves no byte and completes with
//     StatusRemoteAccess.
//   - A device may be used from several goroutines if the caller serialises the
//     calls. Wake may be called at any time from anywhere; while one goroutine is
//     in Wait, another may do everything but Poll and Close.
//   - Wait returns when a message or completion has come, when there may be room
//     again after ErrAgain, after Wake, and when the time is over, which is no
//     error.
//   - Of the requests that a device has taken, only an OpPush may wait for the peer's
//     application: it completes when the peer posts OpPull, which may be never. All
//     others complete as long as the peers' queues are polled. So an OpPush does not
//     count against the depth of the queue pair, and delays nothing that was posted
//     behind it. A device takes Attr.MaxPush of them at a time and answers more with
//     ErrAgain; who posts keeps within that, or what it posts behind them has to wait.
//   - Deregister of a region whose OpPush is open ends that OpPush, with a status
//     other than StatusOK. All 64 bits of a key count.
//   - A closed object answers with ErrClosed; closing it again is harmless.
package rdma
