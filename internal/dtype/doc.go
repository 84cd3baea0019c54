// Package dtype knows how elements lie in memory and how two of them are
// combined. It is pure: it moves bytes in memory it is given and does nothing
// else.
//
// A [Layout] is what MPI calls a datatype (MPI-4.1 chapter 5): a list of byte
// ranges relative to an origin, with a size, a lower bound and an extent. The
// constructors carry MPI's names. Counts and displacements are 64 bits wide.
// Internally a layout is a small tree of blocks, loops and lists, so that a
// vector of a million blocks takes the room of one.
//
// A [View] is a layout laid over memory, checked once. It packs any part of
// the packed stream, and so a message can be cut anywhere and resumed without
// state. Packing does not allocate.
//
// The reductions, [Sum] to [MaxLoc], combine slices element by element. A
// [Kernel] is the same on bytes, for code that does not know the type.
package dtype
