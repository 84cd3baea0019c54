// Package dtype implements memory layouts (MPI datatypes) and predefined
// reductions. It is pure: it only reads and writes the memory it is given.
//
// A [Layout] is what MPI calls a datatype (MPI-4.1 chapter 5): a list of byte
// ranges relative to an origin, with a size, a lower bound and an extent. The
// constructors have MPI's names. Counts and displacements are 64 bits wide.
// Internally a layout is a small tree of blocks, loops and lists, so that a
// vector of a million blocks takes as much memory as one.
//
// A [View] applies a layout to memory and checks the bounds once. It packs any
// part of the packed stream, so a message can be split anywhere and resumed
// without state. Packing does not allocate.
//
// The reductions, [Sum] to [MaxLoc], combine slices element by element. A
// [Kernel] does the same with bytes, for code that does not know the type.
package dtype
