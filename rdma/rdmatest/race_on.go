//go:build race

package rdmatest

// raceDetector tells that the race detector is on, which allocates by itself.
const raceDetector = true
