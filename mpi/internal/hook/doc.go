// Package hook lets package mpi/inspect call unexported functions of package
// mpi. Package mpi registers them when it is initialized, as package log does
// for log/slog through log/internal.
//
// Package mpi imports this package, so the functions take communicators,
// configurations and worlds as any. Package inspect passes the right types.
package hook
