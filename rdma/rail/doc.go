// Package rail makes one device of several: a host with two network interfaces gets
// the bandwidth of both, and keeps talking when one of them dies.
//
// [Open] takes devices that offer reliable datagrams (RD), one for each interface, and
// is a device for RD itself. Short messages go over the rail that will be through with
// them first. A Write or a Read is striped over all rails, in proportion to how fast each
// has lately been (T2 chapter 3 stripes evenly, on rails that are alike). A rail that no
// longer answers, while others do, is left: what was under way on it goes again over the
// others. It is used again once it answers.
//
// Everything travels as numbered messages of the rails, Writes and Reads too, and the
// receiving side takes each number once. So what went over two rails arrives once, and an
// order is kept across rails. A Write that a dead rail delivers late cannot do harm, which
// could not be said of a Write of the rail's own.
//
// The road of a message, and the file for each step:
//
//	pair        PostSend makes an operation of a request                          pair.go, operation.go
//	flow        the operation is cut into pieces, each for a rail                 flow.go, plan.go
//	outgoing    a piece has a number and is kept until a rail has delivered it    outgoing.go
//	path        one rail to one peer: how fast it is, whether it answers          path.go
//	wire        what stands before a piece                                        wire.go
//	arrive      pieces of all rails come together, once each                      arrive.go, incoming.go
//	queues      messages become completions                                       queues.go
//
// While the program computes, a goroutine does what Poll does (attend.go).
//
// find.go reports which interfaces of a host might be rails, and why others should not.
// prove.go and judge.go let hosts dial each other over them, and take those that answer.
package rail
