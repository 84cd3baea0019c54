/*
 * The loop of `muster bench stalls` for other MPI libraries: bench/stalls.go in C, with
 * the same definitions. Rounds of alltoall follow each other without a barrier; the time
 * of a round is that of the rank that was longest in it.
 */
#include "loops.h"
#include <mpi.h>
#include <stdlib.h>

enum { STALL_FACTOR = 5, STALL_ROUNDS = 10000 };
static const double stall_limit = 20e3; /* µs */

static double above(const double *times, long n, double limit)
{
	long count = 0;
	for (long i = 0; i < n; i++)
		count += times[i] > limit;
	return (double)count;
}

void stalls(long size)
{
	long n = opt.iterations ? opt.iterations : STALL_ROUNDS;
	char *in = buffer(size * opt.ranks), *out = buffer(size * opt.ranks);
	double *mine = malloc(sizeof *mine * (size_t)n), *times = malloc(sizeof *times * (size_t)n);
	for (long i = 0; i < warmup(n); i++)
		MPI_Alltoall(in, (int)size, MPI_CHAR, out, (int)size, MPI_CHAR, MPI_COMM_WORLD);
	double last = now(), used = cpu_used(), sum = 0;
	for (long i = 0; i < n; i++) {
		MPI_Alltoall(in, (int)size, MPI_CHAR, out, (int)size, MPI_CHAR, MPI_COMM_WORLD);
		double t = now();
		mine[i] = (t - last) * 1e6;
		last = t;
	}
	used = (cpu_used() - used) / ((double)n * opt.ranks * (opt.ranks > 1 ? opt.ranks - 1 : 1));
	MPI_Reduce(&used, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(mine, times, (int)n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (opt.rank == 0) {
		double mid = median_of(times, n);
		print_line(size, "round", "us", mid, times, (int)n);
		print_single(size, "round-p99", "us", times[(n - 1) * 99 / 100]);
		print_single(size, "round-max", "us", times[n - 1]);
		print_single(size, "stalled", "rounds", above(times, n, STALL_FACTOR * mid));
		print_single(size, "above-limit", "rounds", above(times, n, stall_limit));
		print_single(size, "cpu", "us", sum);
	}
	free(in);
	free(out);
	free(mine);
	free(times);
}
