package soft

import "testing"

func TestKernelDrops(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  101: 0100007F:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 3
  102: 0100007F:1F91 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4712 2 0000000000000000 17
`
	if n, ok := dropsOf(table, "4712"); !ok || n != 17 {
		t.Errorf("%d drops, %v; want 17", n, ok)
	}
	if n, ok := dropsOf(table, "17"); ok {
		t.Errorf("%d drops of a socket that is not in the table", n)
	}
	// The file of the running kernel has a line for the socket of a device.
	a := newTestNode(t, Config{})
	if n := a.net.first.kernelDrops(); n != 0 {
		t.Errorf("%d drops of a new socket", n)
	}
}
