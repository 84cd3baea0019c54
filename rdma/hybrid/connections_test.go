package hybrid

import "testing"

// TestConnectionSlots checks that slots are used again, and that a completion of a connection
// that was removed finds none.
func TestConnectionSlots(t *testing.T) {
	var table connections
	var list [3]*connection
	for i := range list {
		list[i] = &connection{slot: table.freeSlot()}
		list[i].history.bytes = make([]byte, 100)
		table.add(list[i])
	}
	table.remove(list[1])
	if got := table.find(1); got != nil {
		t.Errorf("slot 1 has connection %v after it was removed", got)
	}
	if table.find(2) != list[2] || table.find(3) != nil || table.live != 2 {
		t.Errorf("after one of three was removed, slots 2 and 3 have %v and %v, and %d are live", table.find(2), table.find(3), table.live)
	}
	if got := table.memory(); got != 200 {
		t.Errorf("the histories of two connections take %d bytes, want 200", got)
	}
	if got := table.freeSlot(); got != 1 {
		t.Errorf("the next connection gets slot %d, not the free one", got)
	}
}

// TestRequestIDsDiffer checks that completions of internal requests are told apart.
func TestRequestIDsDiffer(t *testing.T) {
	a, err := newRequestIDs()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for _, id := range []uint64{a.fence, a.notice, a.replay} {
		seen[id] = true
	}
	if len(seen) != 3 {
		t.Errorf("the IDs %+v are not different", a)
	}
}
