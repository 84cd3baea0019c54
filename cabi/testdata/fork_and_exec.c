/* ranks: 2 */
/* Programs start others while MPI runs: system and popen, and fork with exec. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int starts_others(void)
{
	char line[16] = "";
	int status;
	FILE *pipe;
	pid_t child;

	if (system("exit 3") != 3 << 8)
		return 1;
	pipe = popen("echo hello", "r");
	if (pipe == NULL || fgets(line, sizeof line, pipe) == NULL || strcmp(line, "hello\n") != 0 || pclose(pipe) != 0)
		return 2;
	child = fork();
	if (child == 0) {
		execlp("true", "true", (char *)NULL);
		_exit(9);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		return 3;
	return 0;
}

int main(int argc, char **argv)
{
	int rank, i, fault = 0, other = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (i = 0; i < 20 && fault == 0; i++)
		fault = starts_others();
	MPI_Sendrecv(&fault, 1, MPI_INT, 1 - rank, 0, &other, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 0 && fault == 0 && other == 0)
		printf(" No Errors\n");
	else if (rank == 0)
		printf("step %d, on the other rank %d\n", fault, other);
	MPI_Finalize();
	return 0;
}
