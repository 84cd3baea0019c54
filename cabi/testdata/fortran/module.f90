! ranks: 4
! flags: -fallow-argument-mismatch -w
! The module mpi: grids, graphs, requests, windows and files of text.
program module
  use mpi
  implicit none
  integer :: rank, size, ierr, errors, total, grid, graph, i, win, left, right, level, group, other, n
  integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), coords(2), from(1), to(1), ranks(2), translated(2)
  integer, volatile :: cells(4), got ! they change when other functions are called
  integer :: compared
  integer(kind=MPI_ADDRESS_KIND) :: bytes, at
  double precision :: mine, sums(2)
  logical :: flag
  errors = 0
  call MPI_Init_thread(MPI_THREAD_FUNNELED, level, ierr)
  if (level < MPI_THREAD_FUNNELED) errors = errors + 1
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)

  call MPI_Cart_create(MPI_COMM_WORLD, 2, (/2, 2/), (/.false., .true./), .false., grid, ierr)
  call MPI_Cart_shift(grid, 0, 1, left, right, ierr)
  if (rank < 2 .and. left /= MPI_PROC_NULL) errors = errors + 1
  if (rank >= 2 .and. right /= MPI_PROC_NULL) errors = errors + 1
  call MPI_Cart_coords(grid, rank, 2, coords, ierr)
  if (coords(1) /= rank / 2 .or. coords(2) /= mod(rank, 2)) errors = errors + 1
  call MPI_Topo_test(grid, i, ierr)
  if (i /= MPI_CART) errors = errors + 1
  call MPI_Comm_compare(grid, MPI_COMM_WORLD, compared, ierr)
  if (compared /= MPI_CONGRUENT) errors = errors + 1

  from = mod(rank + size - 1, size)
  to = mod(rank + 1, size)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, from, MPI_UNWEIGHTED, 1, to, MPI_UNWEIGHTED, &
       MPI_INFO_NULL, .false., graph, ierr)
  call MPI_Neighbor_allgather(rank, 1, MPI_INTEGER, got, 1, MPI_INTEGER, graph, ierr)
  if (got /= from(1)) errors = errors + 1

  call MPI_Irecv(got, 1, MPI_INTEGER, from(1), 3, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Isend(rank, 1, MPI_INTEGER, to(1), 3, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Waitall(2, requests, statuses, ierr)
  if (got /= from(1) .or. statuses(MPI_SOURCE, 1) /= from(1) .or. requests(1) /= MPI_REQUEST_NULL) errors = errors + 1
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)

  call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
  call MPI_Group_incl(group, 2, (/2, 0/), other, ierr)
  ranks = (/0, MPI_PROC_NULL/)
  call MPI_Group_translate_ranks(group, 2, ranks, other, translated, ierr)
  if (translated(1) /= 1 .or. translated(2) /= MPI_PROC_NULL) errors = errors + 1
  ranks = (/1, 2/)
  call MPI_Group_translate_ranks(group, 2, ranks, other, translated, ierr)
  if (translated(1) /= MPI_UNDEFINED .or. translated(2) /= 0) errors = errors + 1

  cells = 0
  bytes = 16
  call MPI_Win_create(cells, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, at, flag, ierr)
  if (.not. flag .or. at /= bytes) errors = errors + 1
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win, ierr)
  at = 0
  call MPI_Accumulate(1, 1, MPI_INTEGER, 0, at, 1, MPI_INTEGER, MPI_SUM, win, ierr)
  call MPI_Win_unlock(0, win, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win, ierr)
  if (rank == 0 .and. cells(1) /= size) errors = errors + 1
  call MPI_Win_unlock(0, win, ierr)
  call MPI_Win_free(win, ierr)

  mine = rank
  call MPI_Scan(mine, sums, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (abs(sums(1) - rank * (rank + 1) / 2) > 1d-9) errors = errors + 1
  call MPI_Probe(MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Info_create(i, ierr)
  call MPI_Info_set(i, ' key ', 'value  ', ierr)
  call MPI_Info_get_nkeys(i, n, ierr)
  if (n /= 1) errors = errors + 1
  call MPI_Info_free(i, ierr)
  if (i /= MPI_INFO_NULL) errors = errors + 1

  call MPI_Reduce(errors, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. total == 0) print *, 'No Errors'
  if (rank == 0 .and. total /= 0) print *, total, ' errors'
  call MPI_Finalize(ierr)
end program module
