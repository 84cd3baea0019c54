/* A function that the library does not implement ends the job and names itself. */

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	MPI_Count t;
	MPI_Init(&argc, &argv);
	MPI_T_source_get_timestamp(0, &t);
	printf("not reached\n");
	MPI_Finalize();
	return 0;
}
