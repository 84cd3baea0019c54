//go:build !race

package race

// Enabled reports whether the race detector is part of this program.
const Enabled = false

// OrderBeforeSending does nothing in this build.
func OrderBeforeSending() {}

// OrderAfterReceiving does nothing in this build.
func OrderAfterReceiving() {}
