// Package ddp is the part of iWARP that is the same over TCP and over datagrams:
// direct data placement (RFC 5041) and the RDMA operations on it (RFC 5040, RFC
// 7306). It has no socket, no clock and no goroutine; a device brings the segments
// and carries the answers away. Calls on what belongs to one device are serialized
// by the device.
//
// # The road of a segment in
//
//	Header.Decode    the 14 or 18 bytes, or a Fault
//	Stream.Place     where the payload goes: memory, checked, for now only
//	  (the device reads or copies the payload there)
//	Stream.Deliver   once per segment and in order: what has happened, as an Event
//	Stream.Respond   while an answer is owed: the next segment of it
//
// Placement may be asked in any order and again for the same bytes; it changes no count.
// Deliver is asked in the order of the stream. Over TCP the two follow each other;
// over datagrams a segment may be placed long before it is delivered.
//
// Payload of a Write, Send or Read Response goes where Place says. The payload of
// the others is a short header of RDMAP (Opcode.Control); the device keeps it aside
// and gives it to Deliver.
//
// What Place gives is good until the caller gives up the device's lock: a tag may be
// invalidated at any time, and then no byte may follow (RFC 5042 section 6.2.2).
// A device that has placed half of a segment asks again before it places the rest.
//
// # The road of a segment out
//
//	Stream.Send, Write, Read, Fetch   number the message and note what comes back
//	Message.Segment                   the header and length of the next piece
//	Header.Put                        its bytes
//
// # When something is wrong
//
// Every check ends in a [Fault], which is the layer, type and code that a Terminate
// carries. It is a number, so that the good case costs nothing. After a fault the
// stream is over: the device drops what still comes (RFC 5041 section 7.1), and
// Stream.Terminate makes the message that says so, or Stream.Refuse if
// it was Respond that met the fault.
package ddp
