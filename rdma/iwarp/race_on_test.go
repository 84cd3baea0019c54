//go:build race

package iwarp

const raceDetector = true // it allocates
