// Package race reports whether the program is built with the race detector, and informs the
// detector of an order that it cannot see.
//
// Tests use Enabled where the detector allocates, takes ten times as long or observes less.
package race
