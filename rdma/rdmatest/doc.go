// Package rdmatest tests devices for conformance with package rdma.
//
// [Run] is the conformance suite. Every rule that package rdma states is a named check,
// and every device must pass all checks that apply to its Attr. A device calls Run from
// one of its own tests:
//
//	func TestConformance(t *testing.T) {
//		rdmatest.Run(t, rdmatest.Fixture{Name: "shm", Open: openPeers, Unconnected: "memory is shared, nothing connects"})
//	}
//
// A check that a device cannot pass must be listed in Fixture.Exclude with the reason.
//
// [NewReference] creates in-memory devices that are slow and simple, written to be
// obviously correct. They pass the suite, show what it expects, and serve the tests of
// other packages.
//
// [Wrap] injects faults between a device and its user: messages that are lost,
// duplicated, reordered or delayed, and peers that disappear. The same seed produces the
// same faults.
package rdmatest
