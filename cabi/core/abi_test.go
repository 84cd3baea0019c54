package core

import "testing"

// open returns the ABI of Open MPI with some predefined handles.
func open() *abi {
	b := newABI("openmpi", openShift)
	b.addPredefined(0x5000, commWorld, 0, "comm")
	b.addPredefined(0x6000, requestNull, 0, "request")
	b.addPredefined(0x7000, messageNull, 0, "message")
	b.addPredefined(0x8000, made|kindDatatype|1, 49, "datatype") // MPI_DOUBLE_INT
	b.addPredefined(0x9000, 0, 0, "file")
	return b
}

func TestHandlesOfPointers(t *testing.T) {
	b := open()
	for h, want := range map[handle]uint64{
		commWorld: 0x5000, requestNull: 0x6000, made | kindDatatype | 1: 0x8000,
		made | kindDatatype | 9: 0x8c000009 << 9, made | kindComm: 0x84000000 << 9, predefined | kindRequest | 7: 0x6000,
	} {
		if got := b.word(h); got != want {
			t.Errorf("the word of handle %#x is %#x, want %#x", uint32(h), got, want)
		}
		if h != predefined|kindRequest|7 && b.handleOf(want) != h {
			t.Errorf("the handle of %#x is %#x, want %#x", want, uint32(b.handleOf(want)), uint32(h))
		}
	}
	for _, word := range []uint64{0, 1, 0x5008, 1 << 20} {
		if h := b.handleOf(word); h != 0 {
			t.Errorf("%#x is no handle, and becomes %#x", word, uint32(h))
		}
	}
	cells := heapCells(2)
	l := handleArray{b, addressOf(cells), 2}
	l.at(0).set(commWorld)
	l.at(1).setNoMessage()
	if cells[0] != 0x5000 || cells[1] != 0x7000 || l.at(0).get() != commWorld || l.at(1).get() != messageNull {
		t.Errorf("handles in memory are %#x", cells)
	}
	if b.fortranOf(made|kindDatatype|1) != 49 || b.fortranOf(made|kindComm|2) != int32(made|kindComm|2) {
		t.Error("numbers of Fortran are wrong")
	}
}

// Numbers that an ABI does not define never become what the core defines.
func TestNumbersOfOpenMPI(t *testing.T) {
	b := open()
	for _, c := range []struct {
		kind         conversionKind
		theirs, ours int32
	}{
		{numberRank, -1, anySource}, {numberRank, -2, procNull}, {numberRank, -4, root}, {numberRank, 5, 5},
		{numberTag, -1, anyTag}, {numberLock, 1, lockExclusive}, {numberKeyval, 0, int32(attrTagUB)}, {numberAssert, 1 | 4, modeNoCheck | modeNoPut},
		{numberCode, 15, int32(errTruncate)}, {numberCode, firstAdded + 3, firstAdded + 3}, {numberTopology, 1, topoCart},
	} {
		if got := b.number(c.kind, c.theirs); got != c.ours {
			t.Errorf("number %d of kind %d becomes %d, want %d", c.theirs, c.kind, got, c.ours)
		}
		if got := b.numberFor(c.kind, c.ours); got != c.theirs {
			t.Errorf("number %d of kind %d becomes %d for the program, want %d", c.ours, c.kind, got, c.theirs)
		}
	}
	if got := b.number(numberRank, root); got == root || got >= 0 {
		t.Errorf("rank %d, which Open MPI does not define, becomes %d", root, got)
	}
	if got := b.number(numberLock, lockShared); got == lockShared {
		t.Error("a lock type of MPICH is accepted")
	}
	if got := b.numberFor(numberCode, int32(errRMASync)|77<<textShift); got != 47 {
		t.Errorf("the code of an error becomes %d, want its class, 47", got)
	}
	if got := b.numberFor(numberCode, int32(errRevoked)); got != 16 {
		t.Errorf("a class that the ABI does not have becomes %d, want 16, MPI_ERR_OTHER", got)
	}
}

func TestStatusInMemory(t *testing.T) {
	want := status{source: anySource, tag: 7, length: 5<<32 | 9, cancelled: true}
	for name, shift := range map[string]int{"mpich": -1, "openmpi": 9, "mpi5": 0} {
		b := newABI(name, shift)
		cells := heapCells(5)
		cells[4] = 0x1122334455667788
		addr := addressOf(cells)
		b.setError(addr, 3)
		b.setStatus(addr, want)
		got := b.statusAt(addr)
		if got.err != 3 {
			t.Errorf("%s: the error field is %d, and must stay 3", name, got.err)
		}
		if got.err = 0; got != want {
			t.Errorf("%s: the status is %+v, want %+v", name, got, want)
		}
		if cells[4] != 0x1122334455667788 {
			t.Errorf("%s: memory behind the status has changed", name)
		}
	}
}
