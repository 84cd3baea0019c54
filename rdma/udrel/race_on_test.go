//go:build race

package udrel

const raceDetector = true
