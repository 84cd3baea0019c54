! ranks: 2
! The module mpi_f08, whose handles and statuses are types.
module combined
  use mpi_f08
contains
  subroutine combine(in, inout, n, type)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: in, inout
    integer :: n
    type(MPI_Datatype) :: type
    integer, pointer :: a(:), b(:)
    call c_f_pointer(in, a, [n])
    call c_f_pointer(inout, b, [n])
    b = max(a, b)
  end subroutine
end module

program f08
  use mpi_f08
  use combined
  implicit none
  integer :: rank, size, errors, total, n, got, values(3)
  type(MPI_Comm) :: half
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  type(MPI_Datatype) :: pair
  type(MPI_Op) :: op
  errors = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Op_create(combine, .true., op)
  values = [rank, -rank, 5]
  call MPI_Allreduce(MPI_IN_PLACE, values, 3, MPI_INTEGER, op, MPI_COMM_WORLD)
  if (values(1) /= size - 1 .or. values(2) /= 0 .or. values(3) /= 5) errors = errors + 1
  call MPI_Op_free(op)
  call MPI_Comm_split(MPI_COMM_WORLD, rank, 0, half)
  call MPI_Comm_size(half, n)
  if (n /= 1 .or. half == MPI_COMM_NULL) errors = errors + 1
  call MPI_Comm_free(half)
  if (half /= MPI_COMM_NULL) errors = errors + 1
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  call MPI_Irecv(values, 1, pair, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, request)
  call MPI_Send([rank, rank + 7], 2, MPI_INTEGER, 1 - rank, 4, MPI_COMM_WORLD)
  call MPI_Wait(request, status)
  if (status%MPI_SOURCE /= 1 - rank .or. status%MPI_TAG /= 4 .or. values(2) /= 8 - rank) errors = errors + 1
  call MPI_Get_count(status, MPI_INTEGER, n)
  if (n /= 2) errors = errors + 1
  call MPI_Type_free(pair)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, 1 - rank, 0, got, 1, MPI_INTEGER, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  if (got /= 1 - rank) errors = errors + 1
  call MPI_Reduce(errors, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0 .and. total == 0) print *, 'No Errors'
  if (rank == 0 .and. total /= 0) print *, total, ' errors'
  call MPI_Finalize()
end program f08
