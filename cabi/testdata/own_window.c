/* ranks: 2 */
/* Operations on the memory of the own rank are complete when the call returns: programs use
 * the result, or free its memory, before the next synchronization. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int faults;

static void expect(const char *call, int got, int want)
{
	if (got != want) {
		printf("right after %s on the own rank the result is %d, not %d\n", call, got, want);
		faults++;
	}
}

/* Each buffer is freed right after the call. */
static int *word(int value)
{
	int *p;

	MPI_Alloc_mem(sizeof *p, MPI_INFO_NULL, &p);
	*p = value;
	return p;
}

static void operations(MPI_Win win, int rank, int locked)
{
	int *a, *b, *c;
	MPI_Request request;

	a = word(5);
	MPI_Put(a, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
	*a = 0;
	MPI_Get(a, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
	expect("MPI_Get", *a, 5);
	MPI_Free_mem(a);

	a = word(2), b = word(-1);
	MPI_Fetch_and_op(a, b, MPI_INT, rank, 0, MPI_SUM, win);
	expect("MPI_Fetch_and_op", *b, 5);
	MPI_Free_mem(a), MPI_Free_mem(b);

	a = word(20), b = word(7), c = word(-1);
	MPI_Compare_and_swap(a, b, c, MPI_INT, rank, 0, win);
	expect("MPI_Compare_and_swap", *c, 7);
	MPI_Free_mem(a), MPI_Free_mem(b), MPI_Free_mem(c);

	a = word(1), b = word(-1);
	MPI_Get_accumulate(a, 1, MPI_INT, b, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_SUM, win);
	expect("MPI_Get_accumulate", *b, 20);
	MPI_Free_mem(a), MPI_Free_mem(b);

	if (locked) {
		a = word(1), b = word(-1);
		MPI_Rget_accumulate(a, 1, MPI_INT, b, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_SUM, win, &request);
		expect("MPI_Rget_accumulate", *b, 21);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Free_mem(a), MPI_Free_mem(b);
	}
}

static void epochs(MPI_Win win, int rank)
{
	MPI_Win_fence(0, win);
	operations(win, rank, 0);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	operations(win, rank, 1);
	MPI_Win_unlock(rank, win);
	MPI_Win_lock_all(0, win);
	operations(win, rank, 1);
	MPI_Win_unlock_all(win);
}

int main(int argc, char **argv)
{
	int rank, all, *memory, own[4] = {0};
	MPI_Win win;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Win_create(own, sizeof own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	epochs(win, rank);
	MPI_Win_free(&win);
	MPI_Win_allocate(sizeof own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	epochs(win, rank);
	MPI_Win_free(&win);
	MPI_Reduce(&faults, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0 && all == 0)
		printf(" No Errors\n");
	MPI_Finalize();
	return 0;
}
