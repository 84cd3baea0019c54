// Package radix sorts integers on all ranks by radix sort, as the application RADIX of the
// documents does (T1 4.4.2 and figure 4.18, T2 4.4.3 and 6.5.3).
//
// A pass sorts by ten bits of the keys. The ranks count their keys and gather the counts of
// all with an Allgather of 4 KB per rank. From these each rank knows where every key belongs
// and how many it gets from whom, so the keys need no headers. They move in point-to-point
// messages: four receives at a time, the sends, and a wait for the four. Every rank
// communicates with all others, which is why T1 6.6.2 uses RADIX to compare the memory of
// connections.
package radix
