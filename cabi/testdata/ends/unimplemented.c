/* A function that the library does not implement ends the job and names itself. */

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	char port[MPI_MAX_PORT_NAME];
	MPI_Init(&argc, &argv);
	MPI_Open_port(MPI_INFO_NULL, port);
	printf("not reached\n");
	MPI_Finalize();
	return 0;
}
