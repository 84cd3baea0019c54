/* Rank 1 ends the job with status 0, as STOP in Fortran does. */

#include <mpi.h>

int main(int argc, char **argv)
{
	int rank, in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 0);
	MPI_Recv(&in, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 0;
}
