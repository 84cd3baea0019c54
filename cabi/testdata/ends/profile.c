/* Calls from two functions, for the profile of calls. */

#include <mpi.h>

static void __attribute__((noinline)) exchange(int peer, int *out, int *in)
{
	MPI_Request r[2];

	MPI_Irecv(in, 25, MPI_INT, peer, 1, MPI_COMM_WORLD, &r[0]);
	MPI_Isend(out, 25, MPI_INT, peer, 1, MPI_COMM_WORLD, &r[1]);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
	int rank, i, out[25] = {0}, in[25];
	double x = 1, y;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (i = 0; i < 100; i++)
		exchange(1 - rank, out, in);
	MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
