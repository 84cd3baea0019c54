/* A signal without a handler has its default action after MPI_Init. */

#include <mpi.h>
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1)
		kill(getpid(), SIGTERM);
	MPI_Recv(&in, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 0;
}
