! ranks: 3
! flags: -fallow-argument-mismatch -w
!     The functions of mpif.h: operations, attributes and error handlers
!     of the program, which the library calls as Fortran does.
      program old
      implicit none
      include 'mpif.h'
      integer rank, size, ierr, i, op, key, key1, extra, value, comm
      integer handler, code, length, type, request, errors
      integer sum(4), in(4), out(4), status(MPI_STATUS_SIZE)
      integer (kind=MPI_ADDRESS_KIND) big, got, state
      logical flag
      character*(MPI_MAX_ERROR_STRING) text
      character*8 name
      external combine, copied, deleted, copied1, deleted1, handle
      integer calls
      common /counts/ calls
      errors = 0
      calls = 0
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)

      call MPI_OP_CREATE(combine, .true., op, ierr)
      do i = 1, 4
         in(i) = rank + i
      end do
      call MPI_ALLREDUCE(in, sum, 4, MPI_INTEGER, op, MPI_COMM_WORLD,
     &                   ierr)
      do i = 1, 4
         if (sum(i) .ne. size * (size - 1) / 2 + i * size)
     &      errors = errors + 1
      end do
      call MPI_ALLREDUCE(MPI_IN_PLACE, in, 4, MPI_INTEGER, MPI_MAX,
     &                   MPI_COMM_WORLD, ierr)
      if (in(1) .ne. size) errors = errors + 1
      call MPI_OP_FREE(op, ierr)

      state = 7
      call MPI_COMM_CREATE_KEYVAL(copied, deleted, key, state, ierr)
      call MPI_KEYVAL_CREATE(copied1, deleted1, key1, 9, ierr)
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierr)
      big = 5000000000_MPI_ADDRESS_KIND
      call MPI_COMM_SET_ATTR(comm, key, big, ierr)
      call MPI_ATTR_PUT(comm, key1, -3, ierr)
      call MPI_COMM_GET_ATTR(comm, key, got, flag, ierr)
      if (.not. flag .or. got .ne. big) errors = errors + 1
      call MPI_COMM_DUP(comm, type, ierr)
      call MPI_COMM_GET_ATTR(type, key, got, flag, ierr)
      if (.not. flag .or. got .ne. big + 7) errors = errors + 1
      call MPI_ATTR_GET(type, key1, value, flag, ierr)
      if (.not. flag .or. value .ne. 6) errors = errors + 1
      call MPI_COMM_FREE(type, ierr)
      call MPI_COMM_FREE(comm, ierr)
      if (calls .ne. 4) errors = errors + 1
      call MPI_COMM_FREE_KEYVAL(key, ierr)
      call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, MPI_TAG_UB, got, flag,
     &                       ierr)
      if (.not. flag .or. got .lt. 32767) errors = errors + 1

      call MPI_COMM_CREATE_ERRHANDLER(handle, handler, ierr)
      call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, handler, ierr)
      call MPI_SEND(in, 1, MPI_INTEGER, size, 0, MPI_COMM_WORLD, code)
      call MPI_ERROR_CLASS(code, i, ierr)
      if (i .ne. MPI_ERR_RANK) errors = errors + 1
      if (calls .ne. 104) errors = errors + 1
      call MPI_ERROR_STRING(code, text, length, ierr)
      if (length .lt. 5) errors = errors + 1
      call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD,
     &                             MPI_ERRORS_ARE_FATAL, ierr)
      call MPI_ERRHANDLER_FREE(handler, ierr)

      call MPI_TYPE_VECTOR(2, 1, 2, MPI_INTEGER, type, ierr)
      call MPI_TYPE_COMMIT(type, ierr)
      do i = 1, 4
         in(i) = 10 * rank + i
         out(i) = 0
      end do
      call MPI_IRECV(out, 1, type, MPI_ANY_SOURCE, MPI_ANY_TAG,
     &               MPI_COMM_WORLD, request, ierr)
      call MPI_SEND(in, 2, MPI_INTEGER, mod(rank + 1, size), 5,
     &              MPI_COMM_WORLD, ierr)
      call MPI_WAIT(request, status, ierr)
      i = mod(rank + size - 1, size)
      if (status(MPI_SOURCE) .ne. i .or. status(MPI_TAG) .ne. 5)
     &   errors = errors + 1
      call MPI_GET_COUNT(status, MPI_INTEGER, length, ierr)
      if (length .ne. 2 .or. out(1) .ne. 10 * i + 1 .or. out(2) .ne. 0
     &    .or. out(3) .ne. 10 * i + 2) errors = errors + 1
      call MPI_SEND_INIT(rank, 1, MPI_INTEGER, rank, 6, MPI_COMM_WORLD,
     &                   request, ierr)
      do i = 1, 2
         call MPI_START(request, ierr)
         call MPI_RECV(out, 1, MPI_INTEGER, rank, 6, MPI_COMM_WORLD,
     &                 status, ierr)
         call MPI_WAIT(request, status, ierr)
         if (request .eq. MPI_REQUEST_NULL .or. out(1) .ne. rank)
     &      errors = errors + 1
      end do
      call MPI_REQUEST_FREE(request, ierr)
      if (request .ne. MPI_REQUEST_NULL) errors = errors + 1
      call MPI_TYPE_CREATE_KEYVAL(copied, MPI_TYPE_NULL_DELETE_FN, key,
     &                            state, ierr)
      call MPI_TYPE_SET_ATTR(type, key, big, ierr)
      call MPI_TYPE_DUP(type, value, ierr)
      call MPI_TYPE_GET_ATTR(value, key, got, flag, ierr)
      if (.not. flag .or. got .ne. big + 7) errors = errors + 1
      call MPI_TYPE_FREE(value, ierr)
      call MPI_RECV(out, 1, MPI_INTEGER, MPI_PROC_NULL, 0,
     &              MPI_COMM_WORLD, status, ierr)
      if (status(MPI_SOURCE) .ne. MPI_PROC_NULL) errors = errors + 1
      call MPI_TYPE_FREE(type, ierr)

      call MPI_COMM_SET_NAME(MPI_COMM_SELF, 'alone', ierr)
      call MPI_COMM_GET_NAME(MPI_COMM_SELF, name, length, ierr)
      if (length .ne. 5 .or. name .ne. 'alone') errors = errors + 1
      call MPI_TYPE_MATCH_SIZE(MPI_TYPECLASS_REAL, 8, type, ierr)
      call MPI_TYPE_SIZE(type, length, ierr)
      if (length .ne. 8) errors = errors + 1

      call MPI_REDUCE(errors, i, 1, MPI_INTEGER, MPI_SUM, 0,
     &                MPI_COMM_WORLD, ierr)
      if (rank .eq. 0 .and. i .eq. 0) print *, 'No Errors'
      if (rank .eq. 0 .and. i .ne. 0) print *, i, ' errors'
      call MPI_FINALIZE(ierr)
      end

      subroutine combine(a, b, n, type)
      implicit none
      include 'mpif.h'
      integer n, type, a(n), b(n), i
      if (type .ne. MPI_INTEGER) stop 3
      do i = 1, n
         b(i) = a(i) + b(i)
      end do
      end

      subroutine copied(comm, key, extra, in, out, flag, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, ierr
      integer (kind=MPI_ADDRESS_KIND) extra, in, out
      logical flag
      integer calls
      common /counts/ calls
      calls = calls + 1
      out = in + extra
      flag = .true.
      ierr = MPI_SUCCESS
      end

      subroutine deleted(comm, key, value, extra, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, ierr
      integer (kind=MPI_ADDRESS_KIND) extra, value
      integer calls
      common /counts/ calls
      if (extra .ne. 7 .or. value .lt. 5000000000_MPI_ADDRESS_KIND)
     &   stop 4
      calls = calls + 1
      ierr = MPI_SUCCESS
      end

      subroutine copied1(comm, key, extra, in, out, flag, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, extra, in, out, ierr
      logical flag
      integer calls
      common /counts/ calls
      calls = calls + 1
      out = in + extra
      flag = .true.
      ierr = MPI_SUCCESS
      end

      subroutine deleted1(comm, key, value, extra, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, value, extra, ierr
      ierr = MPI_SUCCESS
      end

      subroutine handle(comm, code)
      implicit none
      include 'mpif.h'
      integer comm, code
      integer calls
      common /counts/ calls
      if (comm .ne. MPI_COMM_WORLD) stop 5
      calls = calls + 100
      end
