// Package devices lists the devices of this library: how each is opened, where it works, and
// what benchmarks may vary. Package mpi, the benchmarks and the commands read the table, so
// a new device is a row of it.
package devices
