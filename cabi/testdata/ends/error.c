/* The default error handler ends the job. */

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, in = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1) {
		printf("the buffered line\n");
		MPI_Send(&in, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
		printf("not reached\n");
		return 0;
	}
	MPI_Recv(&in, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 0;
}
