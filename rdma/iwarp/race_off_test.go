//go:build !race

package iwarp

const raceDetector = false
