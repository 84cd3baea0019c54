// Package capture lets others judge what the devices put on the wire. Only tests
// use it.
//
//   - [WriteTCP] puts a conversation of given bytes into a capture file, the way a
//     recorder on a cable would have seen it: no network and no rights are needed.
//   - [Ask] gives such a file to tshark, Wireshark's command, and returns what it
//     made of it as a [Verdict]: frames, opcodes, checksums, markers.
//   - [Record] listens on an interface of this host, for traffic of a real device.
//   - [Read] and [Conversations] go the other way: they turn a recording of real
//     peers into the bytes that each of them sent, for replay through a decoder.
//
// The file format is the classic one of libpcap: a header of 24 bytes, then each
// frame behind a header of 16.
package capture
