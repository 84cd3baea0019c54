package shm

// prefetchWrite asks for n bytes from p on, to be written: the lines leave the
// other core's cache now and not when the copy waits for them.
//
//go:noescape
func prefetchWrite(p *byte, n int)

// prefetchRead asks for n bytes from p on, to be read. A copy loop has about 16
// lines under way at once; asked for ahead, the second-level cache takes three
// times as many.
//
//go:noescape
func prefetchRead(p *byte, n int)

// demote reports that n bytes from p on were written for another core, which then
// finds them nearer than in this one's cache.
//
//go:noescape
func demote(p *byte, n int)
