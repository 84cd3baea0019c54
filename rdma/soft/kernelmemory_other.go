//go:build !linux

package soft

func (*socket) kernelMemory() uint64 { return 0 }

func (*socket) kernelDrops() uint64 { return 0 }
