// Package regcache keeps memory registered with a device after use, in case it
// is used again, and counts how often buffers are used.
//
//	cache.go            Get and Put: the hit, the miss, what a miss registers
//	evict.go            what ends a registration: limits, age, Drop, Flush, Close
//	region_unsafe.go    one registration; the union of two
//	index.go            which region covers an address range
//	held.go             which region belongs to a key
//	regions.go          the regions by number
//	queue.go            in which order regions go
//	generation.go       counts garbage collections
//	uses.go             how often a buffer was used, for small messages
//
// A region in the cache keeps its memory alive. That is what makes a hit right:
// as long as the device knows an address, the runtime can neither give the
// pages back to the system nor put another object there, so an address that is
// found means the same memory. The price, memory that is freed a little later, is
// bounded by a limit in bytes and by age: a region that was not used over some
// garbage collections goes. Memory that the program unmaps itself is not the
// runtime's, and must be announced by Drop.
//
// A Cache is not safe for concurrent use: its user, the engine, has a lock. The
// runtime's cleanups, which count collections, run on goroutines of their own;
// they change one atomic number, and the next call acts on it.
package regcache
