/* An agreement that does not block: one rank starts it before a barrier, the others after it. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int (*iagree)(MPI_Comm, int *, MPI_Request *) = (int (*)(MPI_Comm, int *, MPI_Request *))dlsym(RTLD_DEFAULT, "MPIX_Comm_iagree");
	int rank, root, size, i, test, errors = 0, flag[4];
	MPI_Request requests[3], request;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (iagree == NULL) {
		printf("there is no MPIX_Comm_iagree\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (root = 0; root < size; root++) {
		if (rank == root) {
			flag[0] = 0xb;
			errors += iagree(MPI_COMM_WORLD, flag, &request) != MPI_SUCCESS;
			MPI_Test(&request, &test, MPI_STATUS_IGNORE);
			errors += test || flag[0] != 0xb; /* the others have not begun */
			MPI_Barrier(MPI_COMM_WORLD);
		} else {
			flag[0] = 0xd;
			MPI_Barrier(MPI_COMM_WORLD);
			errors += iagree(MPI_COMM_WORLD, flag, &request) != MPI_SUCCESS;
		}
		errors += MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag[0] != 0x9;
	}
	for (i = 0; i < 3; i++) {
		flag[i] = ~(1 << (rank + 8 * i));
		iagree(MPI_COMM_WORLD, &flag[i], &requests[i]);
	}
	flag[3] = ~(1 << (rank + 24));
	MPIX_Comm_agree(MPI_COMM_WORLD, &flag[3]);
	MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
	for (i = 0; i < 4; i++)
		errors += flag[i] != ~(((1 << size) - 1) << 8 * i);
	if (errors == 0)
		printf(" No Errors\n");
	MPI_Finalize();
	return errors != 0;
}
