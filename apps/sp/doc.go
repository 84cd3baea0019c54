// Package sp is SP of the NAS Parallel Benchmarks: it solves the same equations as BT, on the
// same grid, but in characteristic variables, in which the five of a line are independent
// (Bailey 1994, application SP).
//
// A time step solves scalar pentadiagonal systems along all lines of x, then of y and of z. Its
// messages are those of BT, of about the same size: 22 numbers a line instead of 30, and 10
// back instead of 5. It computes a quarter as much, so that it depends more on communication.
package sp
