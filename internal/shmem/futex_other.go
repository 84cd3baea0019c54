//go:build !linux

package shmem

import (
	"sync/atomic"
	"time"
)

// Sleep returns at once: without Linux there is no memory that processes share.
func Sleep(*atomic.Uint32, uint32, time.Duration) {}

// SleepHoldingP returns at once.
func SleepHoldingP(*atomic.Uint32, uint32, time.Duration) {}

// Wake does nothing.
func Wake(*atomic.Uint32) {}
