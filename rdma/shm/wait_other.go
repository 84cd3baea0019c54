//go:build !linux

package shm

import (
	"sync/atomic"
	"time"
)

// Without Linux there is only heap mode, which sleeps on a channel.

func parkFutex(*atomic.Uint32, uint32, time.Duration) {}

func holdFutex(*atomic.Uint32, uint32, time.Duration) {}

func wakeFutex(*atomic.Uint32) {}
