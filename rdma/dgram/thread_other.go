//go:build !linux

package dgram

import "time"

func asThread(do func()) { do() }

func pause(d time.Duration) { time.Sleep(d) }
