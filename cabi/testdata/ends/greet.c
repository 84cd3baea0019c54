/* Each rank sends its number to rank 0, which prints them. */

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, size, i, in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank != 0)
		MPI_Send(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
	for (i = 1; rank == 0 && i < size; i++) {
		MPI_Recv(&in, 1, MPI_INT, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		printf("rank 0 of %d got %d\n", size, in);
	}
	if (rank == 0)
		printf("rank 0 of %d has all\n", size);
	MPI_Finalize();
	return 0;
}
