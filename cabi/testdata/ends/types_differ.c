#include <mpi.h>

/* A float is sent and a double received. */
int main(int argc, char **argv)
{
	int rank;
	float f[2] = {1, 2};
	double d[1];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1)
		MPI_Send(f, 2, MPI_FLOAT, 0, 3, MPI_COMM_WORLD);
	else
		MPI_Recv(d, 1, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return 0;
}
