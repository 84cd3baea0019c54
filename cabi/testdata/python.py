# Messages of buffers and of objects, by the bindings of Python.
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
right, left = (rank + 1) % size, (rank - 1) % size

assert comm.allreduce(rank) == size * (size - 1) // 2
mine, theirs = array("i", [rank] * 4), array("i", [0] * 4)
comm.Sendrecv(mine, right, 3, theirs, left, 3)
assert theirs == array("i", [left] * 4)

status = MPI.Status()
request = comm.irecv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
comm.send({"from": rank}, right, 7)
assert request.wait(status) == {"from": left}
assert (status.source, status.tag) == (left, 7)

try:
    comm.send(None, size)
except MPI.Exception as e:
    assert e.Get_error_class() == MPI.ERR_RANK
else:
    raise AssertionError("a send to a rank that is not there succeeds")

if comm.reduce(1) == size:
    print("No Errors")
