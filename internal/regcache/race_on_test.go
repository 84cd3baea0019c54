//go:build race

package regcache

const raceDetector = true
