package core

// Check mode: messages carry the function, the place in the program and the datatype of the
// sender, and receives compare the latter.

import (
	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/mpi"
)

// commFor returns the communicator of a message for package mpi.
func (m *message) commFor(a *args) *mpi.Comm {
	if !a.p.checks {
		return m.comm.Comm
	}
	return cbinding.Get().Message(m.comm.Comm, a.name, m.typ.elements.only().representation(), a.site).(*mpi.Comm)
}

// only returns the datatype of all elements, or nil if they differ.
func (s *signature) only() (t *datatype) {
	if s.leaf != nil {
		return s.leaf
	}
	for i, p := range s.parts {
		of := p.of.only()
		if of == nil || i > 0 && of.representation() != t.representation() {
			return nil
		}
		t = of
	}
	return t
}

// representation names a predefined datatype. Those of one representation, such as MPI_INT and
// MPI_INTEGER, have one name: programs mix them. It is "" if messages are not compared:
// MPI_PACKED matches all datatypes (MPI-4.1 section 5.2), and MPI_BYTE is used so.
func (t *datatype) representation() string {
	if t == nil || t.handle == byteType || t.handle == packedType {
		return ""
	}
	for _, row := range predefinedTypes {
		if row.handle == t.handle || t.reduce && row.reduce && row.kind == t.kind && row.handle != byteType {
			return row.name
		}
	}
	return ""
}

// packedType is MPI_PACKED.
const packedType handle = 0x4c00010f
