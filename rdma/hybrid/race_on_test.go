//go:build race

package hybrid

const raceDetector = true
