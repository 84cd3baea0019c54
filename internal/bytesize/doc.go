// Package bytesize parses sizes in bytes, the same way in settings and in flags of
// commands: 8, 64K, 4M, 1GiB, and ranges such as 1:1024.
package bytesize
