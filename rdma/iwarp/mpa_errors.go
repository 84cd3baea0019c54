package iwarp

import "github.com/muster-mpi/muster/rdma/internal/ddp"

// mpaError is an MPA error of the peer, with the contents of the Terminate (RFC 5044
// section 8, RFC 6581 section 8).
type mpaError struct {
	fault ddp.Fault
	text  string
}

func (e *mpaError) Error() string { return "iwarp: MPA: " + e.text }
