/* Rank 1 exits without MPI_Finalize, while rank 0 waits for it. */

#include <mpi.h>

int main(int argc, char **argv)
{
	int rank, in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1)
		return 0;
	MPI_Recv(&in, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return 0;
}
