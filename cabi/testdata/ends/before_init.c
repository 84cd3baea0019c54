/* A call before MPI_Init is an error that ends the program. */

#include <mpi.h>
#include <stdio.h>

int main(void)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	printf("not reached\n");
	return 0;
}
