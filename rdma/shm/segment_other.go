//go:build !linux

package shm

import (
	"fmt"
	"runtime"
)

type segmentFile struct{}

func (d *Device) openProcess() error {
	return fmt.Errorf("shm: ranks as processes need Linux, this is %s; run the ranks as goroutines of one process (Config.Host)", runtime.GOOS)
}

func (s *segmentFile) remove(*segment) error { return nil }

func (d *Device) resolveProcess(*peer, address) error { return d.openProcess() }

func processAlive(*peer) bool { return true }

func unmapPeer(*peer) error { return nil }
