package shm

// prefetchWrite prefetches n bytes at p for writing: the lines leave the other core's cache
// now and not when the copy waits for them.
//
//go:noescape
func prefetchWrite(p *byte, n int)

// prefetchRead prefetches n bytes at p for reading. A copy loop alone has about 16
// outstanding lines; with prefetching, the second-level cache has three times as many.
//
//go:noescape
func prefetchRead(p *byte, n int)

// demote hints that n bytes at p were written for another core, which then finds them
// nearer than in this core's cache.
//
//go:noescape
func demote(p *byte, n int)
