/* ranks: 2 */
/* only: mpich */
/* flags: -Wl,--as-needed -ldl */
/* Language bindings load the library at run time, with its symbols kept to themselves. */

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, size, flag = 0, in = -1;
	void *lib = dlopen("libmpich.so.12", RTLD_NOW | RTLD_LOCAL);

	if (lib == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(lib, "MPI_Init");
	int (*initialized)(int *) = (int (*)(int *))dlsym(lib, "MPI_Initialized");
	int (*finalize)(void) = (int (*)(void))dlsym(lib, "MPI_Finalize");
	int (*comm_rank)(MPI_Comm, int *) = (int (*)(MPI_Comm, int *))dlsym(lib, "MPI_Comm_rank");
	int (*comm_size)(MPI_Comm, int *) = (int (*)(MPI_Comm, int *))dlsym(lib, "MPI_Comm_size");
	int (*sendrecv)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *) =
		(int (*)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *))dlsym(lib, "MPI_Sendrecv");

	init(&argc, &argv);
	initialized(&flag);
	comm_rank(MPI_COMM_WORLD, &rank);
	comm_size(MPI_COMM_WORLD, &size);
	sendrecv(&rank, 1, MPI_INT, 1 - rank, 0, &in, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 0 && flag && size == 2 && in == 1)
		printf(" No Errors\n");
	finalize();
	return dlclose(lib);
}
