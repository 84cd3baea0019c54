// Package shmem is memory that processes of a host share, and what they need to use it.
//
//   - Memory: a memfd, which other processes open through /proc of its creator, or a file in
//     a memory file system (Share, Find; for callers with addresses of their own CreateMemfd,
//     CreateFile, OpenOf and Map).
//   - [Word]: 64 bits that one process publishes and others poll.
//   - Sleeping until a word changes (Sleep, Wake).
//   - Barriers that the side which sleeps executes for all others (GlobalBarrier).
//
// Only Linux has all of it. On other systems ranks are goroutines, which need Word and
// AlignedBytes; the other functions fail or do nothing.
package shmem
