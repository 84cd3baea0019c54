package core

// Statuses (MPI-4.1 section 3.2.5).

import "github.com/muster-mpi/muster/mpi"

func statuses() map[string]handler {
	return map[string]handler{
		"Test_cancelled":       (*Process).testCancelled,
		"Status_set_cancelled": (*Process).statusSetCancelled,
		"Status_c2f":           (*Process).statusCopy,
		"Status_f2c":           (*Process).statusCopy,
	}
}

// status is MPI_Status of the MPICH ABI. The lowest bit of countHigh is the cancelled flag.
type status struct {
	countLow, countHigh int32
	source, tag, err    int32
}

const statusSize = 20

// emptyStatus is the status of calls without a message (MPI-4.1 section 3.7.3).
var emptyStatus = status{source: anySource, tag: anyTag}

// procNullStatus is the status of a receive from MPI_PROC_NULL (MPI-4.1 section 3.10).
var procNullStatus = status{source: procNull, tag: anyTag}

func newStatus(s mpi.Status) status {
	if s.Source == mpi.ProcNull {
		return procNullStatus
	}
	st := status{source: int32(s.Source), tag: int32(s.Tag)}
	st.setBytes(int64(s.Bytes))
	if s.Cancelled {
		st.countHigh |= 1
	}
	return st
}

func (s *status) setBytes(n int64) {
	s.countLow = int32(n)
	s.countHigh = s.countHigh&1 | int32(n>>32)<<1
}

func (s *status) bytes() int64 { return int64(uint32(s.countLow)) | int64(uint32(s.countHigh)>>1)<<32 }

// setStatus stores a status, unless the program ignores it. Single calls leave the error
// field as it is (MPI-4.1 section 3.2.5).
func setStatus(addr uintptr, s status) {
	if addr == 0 || addr == ignoreStatus {
		return
	}
	out := at[status](addr)
	s.err = out.err
	*out = s
}

func (s *status) cancelled() bool { return s.countHigh&1 != 0 }

// status returns the status at parameter i.
func (a *args) status(i int) *status {
	if addr := a.addr(i); addr == 0 || addr == ignoreStatus {
		a.fail(errorf(errArg, "the address is not that of a status"))
		return &status{}
	}
	return at[status](a.addr(i))
}

func (p *Process) testCancelled(a *args) error {
	a.setFlag(1, a.status(0).cancelled())
	return nil
}

func (p *Process) statusSetCancelled(a *args) error {
	s := a.status(0)
	s.countHigh = s.countHigh&^1 | flag(a.int(1) != 0)
	return nil
}

// statusCopy converts a status between C and Fortran, which have the same fields.
func (p *Process) statusCopy(a *args) error {
	from, to := a.status(0), a.status(1)
	*to = *from
	return nil
}
