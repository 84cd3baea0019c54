//go:build !linux

package engine

import "runtime"

func yieldThread() { runtime.Gosched() }

func shortSlice() {}
