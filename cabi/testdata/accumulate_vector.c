/* ranks: 3 */
/* Accumulates whose origin has gaps and whose target has none, which are packed, and the reverse. */

#include <mpi.h>
#include <stdio.h>

enum { N = 1000 };

int main(int argc, char **argv)
{
	int rank, size, i, errs = 0, all, origin[2 * N], target[2 * N];
	MPI_Datatype every;
	MPI_Win win;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Type_vector(N, 1, 2, MPI_INT, &every);
	MPI_Type_commit(&every);
	for (i = 0; i < 2 * N; i++) {
		origin[i] = i % 2 ? -1 : i / 2 + rank;
		target[i] = 0;
	}
	MPI_Win_create(target, sizeof target, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);

	MPI_Win_fence(0, win);
	MPI_Accumulate(origin, 1, every, 0, 0, N, MPI_INT, MPI_SUM, win);
	MPI_Win_fence(0, win);
	for (i = 0; rank == 0 && i < 2 * N; i++) {
		int want = i < N ? size * i + size * (size - 1) / 2 : 0;
		if (target[i] != want && errs++ < 10)
			printf("contiguous target[%d] is %d, want %d\n", i, target[i], want);
		target[i] = 0;
	}

	MPI_Win_fence(0, win);
	for (i = 0; i < N; i++)
		origin[i] = i;
	MPI_Win_fence(0, win);
	MPI_Accumulate(origin, N, MPI_INT, 0, 0, 1, every, MPI_SUM, win);
	MPI_Win_fence(0, win);
	for (i = 0; rank == 0 && i < 2 * N; i++) {
		int want = i % 2 ? 0 : size * (i / 2);
		if (target[i] != want && errs++ < 10)
			printf("target[%d] with gaps is %d, want %d\n", i, target[i], want);
	}

	MPI_Win_free(&win);
	MPI_Type_free(&every);
	MPI_Allreduce(&errs, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0 && all == 0)
		printf(" No Errors\n");
	MPI_Finalize();
	return all != 0;
}
