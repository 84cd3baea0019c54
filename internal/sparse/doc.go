// Package sparse provides tables indexed by rank or peer of which few entries are used. A
// rank of a large job exchanges messages with a few others, so a table that grows with the
// highest number would be most of its memory.
package sparse
