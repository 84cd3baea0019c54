// Package mpiio computes how ranks access a file together (MPI-4.1 chapter 14): where the bytes
// of a view are in the file, which rank reads or writes which part of it for the others, and which
// bytes of such a part nobody has. It is pure: package mpi does the I/O and sends the messages.
//
// The bytes of a view are a stream; a position is an offset in it. The bytes of a file have offsets.
// A view that ranks access together maps positions to offsets in order and without overlap, so the part of a
// request that is in a range of the file is a range of its stream, and two numbers describe it.
package mpiio
