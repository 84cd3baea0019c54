// A token goes round, and every rank adds its number.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	char library[MPI_MAX_LIBRARY_VERSION_STRING];
	int rank, size, length, token = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank > 0)
		MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	token += rank;
	MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Recv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		printf("the token went through %d ranks and brings %d\n", size, token);
		MPI_Get_library_version(library, &length);
		printf("on %.6s\n", library);
	}
	MPI_Finalize();
	return 0;
}
