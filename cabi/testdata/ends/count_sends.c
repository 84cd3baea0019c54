/* A tool for LD_PRELOAD: it replaces MPI_Send by its own, which calls PMPI_Send. */

#include <mpi.h>
#include <stdio.h>

static int sends;

int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
	sends++;
	return PMPI_Send(buf, count, type, dest, tag, comm);
}

int MPI_Finalize(void)
{
	int rank;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("rank %d called MPI_Send %d times\n", rank, sends);
	return PMPI_Finalize();
}
