// Package capture verifies the traffic of the devices with independent tools. Only tests use
// it.
//
//   - [WriteTCP] writes a conversation of given bytes to a capture file, as a recorder on
//     the wire would have seen it: no network and no privileges are needed.
//   - [Dissect] passes such a file to tshark, Wireshark's command, and returns its result as
//     a [Dissection]: frames, opcodes, checksums, markers.
//   - [Record] records the traffic of a real device on an interface of this host.
//   - [Read] and [Conversations] do the reverse: they extract from a recording of real peers
//     the bytes that each of them sent, for replay through a decoder.
//
// The file format is the classic one of libpcap: a header of 24 bytes, then each frame after
// a header of 16.
package capture
