// Package crc32c computes CRC-32C, the checksum of MPA (RFC 5044 section 4.4) and of our
// datagrams, of long messages faster than hash/crc32, and copies and checks in one pass.
//
//   - crc32c.go: the functions, and what they do where there is nothing faster than
//     hash/crc32.
//   - fold_amd64.go, fold_amd64.s: folding with carry-less multiplication.
//   - fold_other.go: other processors. On arm64, hash/crc32 uses the instruction for it.
package crc32c
