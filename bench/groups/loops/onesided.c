/* One-sided communication, the loops of bench/onesided.go: a put, get or sum into the
 * memory of rank 1 and a flush, under a lock that rank 0 holds all the time; and all
 * ranks adding to one word of rank 0. The memory is that of MPI_Win_allocate, so that
 * each library may use shared memory.
 */
#include "loops.h"
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int is_window(const char *name)
{
	return strcmp(name, "put") == 0 || strcmp(name, "get") == 0 || strcmp(name, "acc") == 0;
}

static void call(MPI_Win win, int64_t *buf, int n)
{
	if (opt.bench[0] == 'p')
		MPI_Put(buf, n, MPI_INT64_T, 1, 0, n, MPI_INT64_T, win);
	else if (opt.bench[0] == 'g')
		MPI_Get(buf, n, MPI_INT64_T, 1, 0, n, MPI_INT64_T, win);
	else
		MPI_Accumulate(buf, n, MPI_INT64_T, 1, 0, n, MPI_INT64_T, MPI_SUM, win);
	MPI_Win_flush(1, win);
}

void one_sided(long size)
{
	int n = (int)(size / 8);
	long iter = iterations(size, 100000, 200);
	int64_t *mem, *buf = (int64_t *)buffer(size);
	double samples[BATCHES];
	MPI_Win win;
	MPI_Win_allocate(size, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	memset(mem, 1, size);
	MPI_Barrier(MPI_COMM_WORLD);
	if (opt.rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
		for (long i = 0; i < warmup(iter); i++)
			call(win, buf, n);
		int count = iter < BATCHES ? (int)iter : BATCHES;
		long each = (iter + count - 1) / count;
		double start = now(), last = start;
		for (int b = 0; b < count; b++) {
			for (long i = 0; i < each; i++)
				call(win, buf, n);
			double t = now();
			samples[b] = (t - last) * 1e6 / each;
			last = t;
		}
		MPI_Win_unlock(1, win);
		print_line(size, "latency", "us", (last - start) * 1e6 / ((double)count * each), samples, count);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&win);
	free(buf);
}

void fetch_add(void)
{
	long n = iterations(8, 100000, 200);
	int64_t *mem, one = 1, was;
	MPI_Win win;
	MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	memset(mem, 0, 64);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now();
	for (long i = 0; i < n; i++) {
		MPI_Fetch_and_op(&one, &was, MPI_INT64_T, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	double took = now() - start;
	MPI_Win_unlock_all(win);
	if (opt.rank == 0) {
		double rate = (double)n * opt.ranks / took;
		if (mem[0] != n * opt.ranks)
			die("an addition was lost");
		print_line(0, "rate", "op/s", rate, &rate, 1);
	}
	MPI_Win_free(&win);
}
