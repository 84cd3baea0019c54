//go:build !linux

package engine

import (
	"runtime"
	"time"
)

func yieldThread() { runtime.Gosched() }

func shortSlice() {}

func napThread(d time.Duration) { time.Sleep(d) }
