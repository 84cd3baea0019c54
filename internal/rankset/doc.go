// Package rankset provides ordered sets of world ranks: the members of a group or of a
// communicator. Most are arithmetic sequences, such as every second rank or the ranks of a
// node, and take a few words whatever their size.
package rankset
