//go:build !linux

package bench

import "time"

func usableCores() []int { return nil }

func pinWithPriority(int) bool { return false }

func stolenTime() time.Duration { return 0 }
