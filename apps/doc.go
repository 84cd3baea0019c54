// Package apps lists the applications of Muster: benchmarks and small simulations, each a
// package of its own below this one, written on the public API alone. "muster app NAME"
// runs one.
package apps
