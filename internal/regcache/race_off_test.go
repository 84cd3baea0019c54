//go:build !race

package regcache

const raceDetector = false
