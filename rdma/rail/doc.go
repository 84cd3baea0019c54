// Package rail combines several devices into one: a host with two network interfaces
// gets the bandwidth of both, and keeps communicating when one of them fails.
//
// [Open] takes devices that provide reliable datagrams (RD), one for each interface,
// and returns an RD device. Short messages use the rail that will finish them first. A
// Write or a Read is striped over all rails, in proportion to their recent speed (T2
// chapter 3 stripes evenly, on equal rails). A rail that no longer delivers, while
// others do, is left: its pieces in flight are sent again over the others. It is used
// again once it delivers.
//
// Everything is sent as numbered messages of the rails, Writes and Reads too, and the
// receiver accepts each number once. So a piece that was sent over two rails is
// delivered once, and the order is kept across rails. A piece of a Write that a failed
// rail delivers late does no harm; an RDMA Write of the rail's own device could.
//
// The path of a message, and the file for each step:
//
//	pair        PostSend makes an operation of a request                          pair.go, operation.go
//	flow        cuts the operation into pieces and assigns each to a rail         flow.go, plan.go
//	outgoing    numbers a piece and keeps it until a rail has delivered it        outgoing.go
//	path        one rail to one peer: its speed, and whether it delivers          path.go
//	wire        the header of a piece                                             wire.go
//	receive     merges the pieces of all rails, each once                         receive.go, incoming.go
//	queues      messages become completions                                       queues.go
//
// While the application computes, the progress thread does what Poll does (package
// rdma/internal/soft).
package rail
