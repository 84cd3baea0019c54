/* A child of fork must not call MPI. A call there ends the child with a message, or returns
 * an error if the program has asked for that, and neither waits nor touches the messages of
 * the parent. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank;

/* Enough messages for the library to use its fastest path. */
static void exchange(void)
{
	int i, x;

	for (i = 0; i < 500; i++) {
		if (rank == 0) {
			MPI_Send(&i, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
			MPI_Recv(&x, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(&x, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(&x, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
		}
		if (x != i) {
			printf("rank %d received %d, not %d\n", rank, x, i);
			MPI_Abort(MPI_COMM_WORLD, 9);
		}
	}
}

static int send(void) { return MPI_Send(&rank, 1, MPI_INT, 1, 7, MPI_COMM_WORLD); }
static int receive(void) { return MPI_Recv(&rank, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static int allreduce(void) { int sum; return MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF); }
static int finalize(void) { return MPI_Finalize(); }
static int init(void) { return MPI_Init(NULL, NULL); }
static int abort_job(void) { return MPI_Abort(MPI_COMM_WORLD, 6); }
static int leave(void) { exit(5); }

static void try(const char *name, int (*call)(void))
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(10);
		_exit(call() == MPI_SUCCESS ? 40 : 50);
	}
	exchange();
	waitpid(child, &status, 0);
	printf("%s: status %d, signal %d\n", name, WEXITSTATUS(status), WTERMSIG(status));
	exchange();
}

int main(int argc, char **argv)
{
	struct { const char *name; int (*call)(void); } calls[] = {
		{"send", send}, {"receive", receive}, {"allreduce", allreduce}, {"finalize", finalize}, {"init", init}, {"abort", abort_job}, {"exit", leave}};
	int i, n = (int)(sizeof calls / sizeof *calls);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	exchange();
	for (i = 0; i < 2 * n; i++) {
		if (i == n) {
			if (rank == 0)
				printf("errors return:\n");
			MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		}
		if (rank == 0)
			try(calls[i % n].name, calls[i % n].call);
		else
			exchange(), exchange();
	}
	if (rank == 0)
		printf("the messages of the parent arrived\n");
	MPI_Finalize();
	return 0;
}
