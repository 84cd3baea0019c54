//go:build !race

package rdmatest

const raceDetector = false
