//go:build race

package rdmatest

// raceDetector reports that the race detector is enabled; it allocates by itself.
const raceDetector = true
