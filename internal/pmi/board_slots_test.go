package pmi

import "testing"

func TestSlots(t *testing.T) {
	b := NewBoard(2)
	if _, _, _, ok := b.Contribution(1, 3, 7); ok {
		t.Error("an empty slot has a contribution")
	}
	b.Contribute(1, 3, 7, 70, 71, 2)
	b.Contribute(1, 3, 8, 80, 81, 3)
	for round := uint64(7); round <= 8; round++ { // a slot has those of two rounds
		flag, number, failures, ok := b.Contribution(1, 3, round)
		if !ok || flag != round*10 || number != flag+1 || failures != int(round)-5 {
			t.Errorf("the contribution to round %d is %d, %d with %d failures: %v", round, flag, number, failures, ok)
		}
	}
	if _, _, _, ok := b.Contribution(1, 3, 9); ok {
		t.Error("the contribution to round 7 counts for round 9")
	}
	if _, _, _, ok := b.Contribution(0, 3, 7); ok {
		t.Error("the contribution of rank 1 counts for rank 0")
	}
	b.Conclude(1, 3, 100, 7)
	if !b.Concluded(1, 3, 100, 7) || b.Concluded(1, 3, 100, 8) || !b.Concluded(1, 3, 102, 8) {
		t.Error("rank 1 has concluded round 7 of context 100, and nothing of context 102")
	}
	b.SleepInSlot(1, 3, 8)
	if b.WakeInSlot(1, 3, 7) || !b.WakeInSlot(1, 3, 8) || b.WakeInSlot(1, 3, 8) {
		t.Error("rank 1 sleeps until round 8 and is woken once")
	}
	b.ClearSlot(1, 3)
	if _, _, _, ok := b.Contribution(1, 3, 8); ok || !b.Concluded(1, 3, 100, 9) {
		t.Error("a cleared slot has a contribution or an owner")
	}
	// No other part of the board is touched, and no slot beyond the last is.
	b.Contribute(1, Slots, 1, 1, 1, 0)
	if b.Deaths() != 0 || b.Row(1).State != RowAbsent {
		t.Error("slots overlap with other parts of the board")
	}
}
