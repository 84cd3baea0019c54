// Package cbinding lets the C interface (cabi/core) call functions of package mpi that no other
// program needs: windows of bytes, the direct path for short messages, and what profiles and
// check mode want to know of a call of C. Package mpi registers them when it is initialized.
//
// Package mpi imports this package, so the functions take communicators and worlds as any.
package cbinding
