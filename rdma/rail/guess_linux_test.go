package rail

import (
	"testing"

	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

func TestKeyGuessing(t *testing.T) {
	rdmatest.RunGuesses(t, guard.MaxStrikes, openDatagrams)
}
