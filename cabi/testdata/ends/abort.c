/* Rank 1 ends the job with status 7. What it has printed is still in the buffer of stdio. */

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1) {
		printf("the buffered line\n");
		MPI_Abort(MPI_COMM_WORLD, 7);
		return 0;
	}
	MPI_Recv(&in, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 0;
}
