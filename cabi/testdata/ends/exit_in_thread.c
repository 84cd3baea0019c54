/* Threads exchange messages, and then one that is not the first ends the program, without
 * MPI_Finalize. Rank 1 ends later, and no rank waits for another. osu_latency_mt ends so. */

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, MESSAGES = 200 };

static int rank;
static pthread_barrier_t done;

static void *exchange(void *arg)
{
	int id = *(int *)arg, peer = 1 - rank, i, out, in;
	MPI_Request send;

	for (i = 0; i < MESSAGES; i++) {
		out = 1000 * id + i;
		MPI_Isend(&out, 1, MPI_INT, peer, id, MPI_COMM_WORLD, &send);
		MPI_Recv(&in, 1, MPI_INT, peer, id, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		if (in != out) {
			fprintf(stderr, "thread %d got %d, want %d\n", id, in, out);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	pthread_barrier_wait(&done);
	if (id != 0)
		pause();
	if (rank == 1)
		usleep(300000);
	printf("the buffered line");
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int ids[THREADS], level, i;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (level != MPI_THREAD_MULTIPLE)
		MPI_Abort(MPI_COMM_WORLD, 2);
	pthread_barrier_init(&done, NULL, THREADS);
	for (i = 0; i < THREADS; i++) {
		ids[i] = i;
		pthread_create(&threads[i], NULL, exchange, &ids[i]);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 3;
}
