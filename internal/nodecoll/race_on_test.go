//go:build race

package nodecoll

const raceDetector = true
