// Package core has the functions of the C interface, on integer handles and addresses.
//
// A call arrives as the number of a function and an array with its arguments. The files
// follow the chapters of MPI; each has a table from names to methods of Process. A method
// decodes its arguments (args.go), calls package mpi and stores the results in the memory
// of the program (memory_unsafe.go). It returns a Go error; raise (errors.go) makes an error
// code of it and decides by the error handler of the communicator what the front does with
// it.
//
// Handles are integers that encode the kind of the object (handles.go). Addresses and
// handles never become Go pointers before they are known to be memory: the runtime rejects
// small numbers in pointers.
package core
