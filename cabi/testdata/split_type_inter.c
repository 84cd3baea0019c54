/* ranks: 4 */
/* MPI_Comm_split_type of an inter-communicator (MPI-4.1 section 7.4.2) makes one of the ranks
 * of both groups that share memory. */

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, inter, errors = 0, all, sum = -1, local = 0, remote = 0;
	MPI_Comm half, pair, node, none;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &pair);
	MPI_Comm_split_type(pair, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &node);
	MPI_Comm_split_type(pair, MPI_UNDEFINED, 0, MPI_INFO_NULL, &none);
	MPI_Comm_test_inter(node, &inter);
	if (!inter || none != MPI_COMM_NULL) {
		errors++;
	} else {
		MPI_Comm_size(node, &local);
		MPI_Comm_remote_size(node, &remote);
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, node); /* of the other group */
		errors += local != 2 || remote != 2 || sum != (rank % 2 ? 0 + 2 : 1 + 3);
		MPI_Comm_rank(node, &local);
		errors += local != (rank < 2); /* the keys turn the order round */
	}
	MPI_Reduce(&errors, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0 && all == 0)
		printf(" No Errors\n");
	else if (rank == 0)
		printf("%d errors; sum %d, remote size %d\n", all, sum, remote);
	MPI_Comm_free(&half);
	MPI_Comm_free(&pair);
	MPI_Comm_free(&node);
	MPI_Finalize();
	return 0;
}
