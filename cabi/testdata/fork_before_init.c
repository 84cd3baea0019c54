/* ranks: 2 */
/* The process that the launcher started forks, as a daemon does, and its child is the rank.
 * The library must not have started the Go runtime before the fork. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank_main(int argc, char **argv)
{
	int rank, size, token = -1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0) {
		token = 7;
		MPI_Send(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
		MPI_Recv(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (size == 2 && token == 8)
			printf(" No Errors\n");
		else
			printf("size %d, token %d\n", size, token);
	} else {
		MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		token++;
		MPI_Send(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}

int main(int argc, char **argv)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		return rank_main(argc, argv);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}
