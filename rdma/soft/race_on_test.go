//go:build race

package soft

const raceDetector = true
