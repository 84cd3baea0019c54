//go:build !race

package dgram

const raceDetector = false
