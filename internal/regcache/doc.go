// Package regcache keeps memory registered with a device after use, for reuse, and counts
// how often buffers are used.
//
//	cache.go            Get and Put: hits and misses, what a miss registers
//	evict.go            what ends a registration: limits, age, Drop, Flush, Close
//	region_unsafe.go    one registration; the union of two
//	index.go            finds the region that covers an address range
//	held.go             finds the region in use with a key
//	regions.go          allocates regions by number
//	queue.go            the order of eviction
//	generation.go       counts garbage collections
//	uses.go             counts the uses of buffers, for small messages
//
// A region in the cache keeps its memory alive. That makes a hit correct: while an address
// is registered, the runtime can neither return the pages to the system nor put another
// object there, so the address still refers to the same memory. The price, memory that is
// freed a little later, is bounded by a limit in bytes and by age: a region that was not
// used during some garbage collections is evicted. Memory that the program unmaps itself
// does not belong to the runtime; the program must call Drop first.
//
// A Cache is not safe for concurrent use: the engine has a lock. The runtime's cleanups,
// which count collections, run on goroutines of their own; they change one atomic counter,
// and the next call acts on it.
package regcache
