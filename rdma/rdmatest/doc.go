// Package rdmatest keeps devices honest.
//
// [Run] is the conformance suite: every rule that package rdma states is a
// named check, and every device passes all checks that its Attr does not rule
// out. A device calls it from a test of its own:
//
//	func TestConformance(t *testing.T) {
//		rdmatest.Run(t, rdmatest.Fixture{Name: "shm", Open: openPeers, Unconnected: "memory is shared, nothing connects"})
//	}
//
// A check that a device cannot pass is listed in Fixture.Exclude with the
// reason. There is no other way round it.
//
// [NewReference] makes devices on the heap that are slow, simple and written to
// be right at a glance. They pass the suite, show what it expects, and serve
// the tests of other packages.
//
// [Wrap] puts faults between a device and its user: messages that are lost,
// doubled, reordered or late, and peers that disappear. The same seed gives the
// same faults.
package rdmatest
