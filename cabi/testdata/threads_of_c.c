/* ranks: 2 */
/* flags: -pthread */
/* Threads that the program has created call MPI at the same time (MPI_THREAD_MULTIPLE):
 * threads unknown to the Go runtime, more of them than cores, and new ones again and again. */

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 6, GENERATIONS = 5, ROUNDS = 100, COUNT = 1000 };

static int rank;

static void *talk(void *arg)
{
	int tag = *(int *)arg, i;
	static __thread int out[COUNT], in[COUNT];
	long faults = 0;

	for (i = 0; i < ROUNDS; i++) {
		int n = i % 10 == 0 ? COUNT : 1;
		MPI_Status status;

		out[0] = out[n - 1] = 1000 * tag + i;
		in[0] = in[n - 1] = -1;
		if (rank == 0) {
			MPI_Send(out, n, MPI_INT, 1, tag, MPI_COMM_WORLD);
			MPI_Recv(in, COUNT, MPI_INT, 1, tag, MPI_COMM_WORLD, &status);
		} else {
			MPI_Recv(in, COUNT, MPI_INT, 0, tag, MPI_COMM_WORLD, &status);
			MPI_Send(in, n, MPI_INT, 0, tag, MPI_COMM_WORLD);
		}
		faults += in[0] != out[0] || in[n - 1] != out[0] || status.MPI_TAG != tag;
	}
	return (void *)faults;
}

int main(int argc, char **argv)
{
	int provided, i, g, tags[THREADS];
	long faults = 0;
	pthread_t threads[THREADS];

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (provided != MPI_THREAD_MULTIPLE)
		faults++;
	for (g = 0; g < GENERATIONS; g++) {
		for (i = 0; i < THREADS; i++) {
			tags[i] = i + 1;
			if (pthread_create(&threads[i], NULL, talk, &tags[i]) != 0)
				return 1;
		}
		for (i = 0; i < THREADS; i++) {
			void *result;

			pthread_join(threads[i], &result);
			faults += (long)result;
		}
	}
	if (rank == 0 && faults == 0)
		printf(" No Errors\n");
	MPI_Finalize();
	return faults != 0;
}
