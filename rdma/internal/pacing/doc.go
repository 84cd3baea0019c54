// Package pacing is for the goroutine of a device that serves its sockets while the program
// computes: it must be woken soon, and cost a program that polls nothing.
package pacing
