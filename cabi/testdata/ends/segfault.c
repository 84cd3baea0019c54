/* A fault of the program kills it, as it would without a Go runtime in the process. */

#include <mpi.h>

int main(int argc, char **argv)
{
	int rank, in;
	volatile int *volatile nowhere = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1)
		*nowhere = 1;
	MPI_Recv(&in, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 0;
}
