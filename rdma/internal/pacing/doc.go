// Package pacing paces and schedules the progress thread of a device, which services
// its sockets while the application computes. The thread must wake up soon, and must
// not slow down an application that polls.
package pacing
