// Package ddp implements the part of iWARP that is the same over TCP and over datagrams:
// direct data placement (RFC 5041) and the RDMA operations on it (RFC 5040, RFC 7306). It has
// no socket, no clock and no goroutine; a device passes in the segments and sends the
// responses. The device serializes all calls on its objects.
//
// # Receiving a segment
//
//	Header.Decode      the 14 or 18 bytes, or a Fault
//	Stream.Placement   the memory for the payload, checked, valid only for now
//	  (the device reads or copies the payload there)
//	Stream.Deliver     once per segment and in order: the result, as an Event
//	Stream.Respond     while a response is pending: its next segment
//
// Placement may be called in any order and again for the same bytes; it changes no state.
// Deliver is called in the order of the stream. Over TCP the two follow each other; over
// datagrams a segment may be placed long before it is delivered.
//
// The payload of a Write, Send or Read Response goes to the memory that Placement returns. The
// payload of the others is a short RDMAP header (Opcode.Control); the device stores it
// separately and passes it to Deliver.
//
// The result of Placement is valid until the caller releases the device's lock: a tag may be
// invalidated at any time, and then no byte may follow (RFC 5042 section 6.2.2). A device that
// has placed half of a segment calls Placement again before it places the rest.
//
// # Sending a segment
//
//	Stream.Send, Write, Read, Fetch   number the message and record the expected response
//	Message.Segment                   the header and length of the next piece
//	Header.Put                        its bytes
//
// # Errors
//
// Every check returns a [Fault], which is the layer, type and code that a Terminate carries.
// It is a number, so that success costs nothing. After a fault the stream is over: the device
// discards further input (RFC 5041 section 7.1), and Stream.Terminate makes the message that
// reports it, or Stream.Refuse if Respond returned the fault.
package ddp
