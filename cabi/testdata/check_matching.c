/* ranks: 2 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In check mode, messages whose types have the same elements are accepted: a vector sent and
 * contiguous elements received, the types of C and Fortran of one representation, and bytes. */
int main(int argc, char **argv)
{
	int rank, a[6] = {1, 0, 2, 0, 3, 0}, b[6] = {0};
	char packed[64];
	int at = 0;
	MPI_Datatype column;
	MPI_Request r;

	setenv("MUSTER_CHECK", "on", 1);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Type_vector(3, 1, 2, MPI_INT, &column);
	MPI_Type_commit(&column);
	if (rank == 1) {
		MPI_Send(a, 1, column, 0, 0, MPI_COMM_WORLD);
		MPI_Send(a, 3, MPI_INTEGER, 0, 1, MPI_COMM_WORLD);
		MPI_Isend(a, 3, MPI_INT, 0, 2, MPI_COMM_WORLD, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		MPI_Pack(a, 3, MPI_INT, packed, sizeof packed, &at, MPI_COMM_WORLD);
		MPI_Send(packed, at, MPI_PACKED, 0, 3, MPI_COMM_WORLD);
		MPI_Sendrecv(a, 3, MPI_INT, 0, 4, b, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(b, 3, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (b[0] != 1 || b[1] != 2 || b[2] != 3)
			printf("received %d %d %d\n", b[0], b[1], b[2]);
		MPI_Recv(b, 3, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(b, 3 * sizeof *b, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(b, 3, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(b, 3, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (memcmp(a, b, 3 * sizeof *b) == 0)
			printf("No Errors\n");
	}
	MPI_Type_free(&column);
	MPI_Finalize();
	return 0;
}
