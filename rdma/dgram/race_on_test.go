//go:build race

package dgram

const raceDetector = true
