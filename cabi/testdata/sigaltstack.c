/* ranks: 2 */
/* A program that frees its alternate signal stack before MPI_Finalize, as faulthandler of Python does when the interpreter
 * ends: signals that come in MPI_Finalize do no harm. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_t first;
static volatile int over;

/* interrupt sends the signal by which the runtime of Go preempts, as that does at times. */
static void *interrupt(void *none)
{
	while (!over)
		pthread_kill(first, SIGURG);
	return none;
}

int main(int argc, char **argv)
{
	stack_t ours = {0}, before;
	pthread_t thread;
	int rank, sum = 0;

	ours.ss_size = 1 << 16;
	ours.ss_sp = malloc(ours.ss_size);
	if (sigaltstack(&ours, &before) != 0)
		return 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (sigaltstack(&before, NULL) != 0)
		return 1;
	free(ours.ss_sp);
	first = pthread_self();
	if (pthread_create(&thread, NULL, interrupt, NULL) != 0)
		return 1;
	MPI_Finalize();
	over = 1;
	pthread_join(thread, NULL);
	if (rank == 0 && sum == 1)
		printf("No Errors\n");
	return sum != 1;
}
