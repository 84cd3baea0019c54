! ranks: 2
! Processes that a program in Fortran starts: arrays of arguments end with a blank one, and those of
! several commands are the rows of an array (MPI-4.1 section 11.8).
program spawn
  use mpi
  implicit none
  integer :: ierr, rank, parent, inter, codes(3), n
  character(len=256) :: prog
  character(len=20) :: args(3), rows(2, 3)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_get_parent(parent, ierr)
  if (parent /= MPI_COMM_NULL) then
    call child()
    call MPI_Finalize(ierr)
    stop
  end if
  call get_command_argument(0, prog)

  args = [character(len=20) :: 'two words', 'last', '']
  codes = -1
  call MPI_Comm_spawn(prog, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, codes, ierr)
  if (any(codes(1:2) /= MPI_SUCCESS)) call fail('error codes')
  call talk(inter, 0, 4)

  call MPI_Comm_spawn(prog, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE, ierr)
  call talk(inter, 0, 3)

  rows(1, :) = [character(len=20) :: 'two words', 'last', '']
  rows(2, :) = ''
  call MPI_Comm_spawn_multiple(2, [prog, prog], rows, [1, 2], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_WORLD, inter, codes, ierr)
  if (any(codes /= MPI_SUCCESS)) call fail('error codes of several commands')
  call talk(inter, 0, 5)

  call MPI_Comm_spawn_multiple(2, [prog, prog], MPI_ARGVS_NULL, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_WORLD, inter, &
    MPI_ERRCODES_IGNORE, ierr)
  call talk(inter, 0, 4)

  call ports()
  call MPI_Finalize(ierr)
  if (rank == 0) print *, 'No Errors'

contains

  subroutine fail(what)
    character(len=*), intent(in) :: what
    print *, 'rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine fail

  ! A program has both arguments, or none.
  subroutine child()
    character(len=20) :: word
    n = command_argument_count()
    if (n /= 0) then
      if (n /= 2) call fail('number of arguments')
      call get_command_argument(1, word)
      if (word /= 'two words') call fail('first argument')
      call get_command_argument(2, word)
      if (word /= 'last') call fail('second argument')
    end if
    call talk(parent, 1, 0)
  end subroutine child

  subroutine talk(with, high, all)
    integer, intent(inout) :: with
    integer, intent(in) :: high, all
    integer :: both, total
    call MPI_Intercomm_merge(with, high == 1, both, ierr)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, both, ierr)
    if (all > 0 .and. total /= all) call fail('number of processes')
    call MPI_Comm_disconnect(both, ierr)
    call MPI_Comm_disconnect(with, ierr)
    if (with /= MPI_COMM_NULL) call fail('disconnect')
  end subroutine talk

  subroutine ports()
    character(len=MPI_MAX_PORT_NAME) :: port
    if (rank == 0) then
      call MPI_Open_port(MPI_INFO_NULL, port, ierr)
      call MPI_Publish_name('a service', MPI_INFO_NULL, port, ierr)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    if (rank == 0) then
      call MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter, ierr)
      call MPI_Unpublish_name('a service', MPI_INFO_NULL, port, ierr)
      call MPI_Close_port(port, ierr)
    else
      call MPI_Lookup_name('a service', MPI_INFO_NULL, port, ierr)
      call MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter, ierr)
    end if
    call talk(inter, rank, 2)
  end subroutine ports
end program spawn
