/*
 * The loop of `muster bench cpu` for other MPI libraries: bench/cpu.go in C, with the
 * same periods and figures. See there for the reasons.
 */
#define _GNU_SOURCE
#include "loops.h"
#include <mpi.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { WINDOW = 16, CPU_BATCHES = 10, PERIODS = 200, TAG = 2 };
static const double period = 6e-3, late_after = 1e-3; /* seconds */

static double next; /* when this rank acts in the next period */
static MPI_Request requests[WINDOW];
static int pending;
static double late;
static double *periods; /* processor time of each period of a batch, µs */

static double wall(void) /* seconds, by the clock that ranks share */
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

double cpu_used(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

static void rest(void)
{
	double d = next - wall();
	if (d > 0) {
		struct timespec t = {(time_t)d, (long)((d - (double)(time_t)d) * 1e9)};
		nanosleep(&t, NULL);
	}
	next += period;
}

static void complete(void)
{
	MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
	pending = 0;
}

static void window(char *b, int size, int n)
{
	if (opt.rank == 0) {
		complete();
		while (pending < n)
			MPI_Isend(b, size, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &requests[pending++]);
		return;
	}
	double start = now();
	while (pending < n)
		MPI_Irecv(b, size, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &requests[pending++]);
	complete();
	late += now() - start > late_after;
}

static double batch(char *b, int size, long n, int messages)
{
	for (long i = -1; i < n; i++) {
		double before = cpu_used();
		window(b, size, messages);
		rest();
		if (i >= 0)
			periods[i] = cpu_used() - before;
	}
	return median_of(periods, n);
}

void cpu(long size)
{
	double samples[CPU_BATCHES + 1], sums[CPU_BATCHES + 1], begin = wall() + 2 * period;
	long each = (opt.iterations ? opt.iterations : PERIODS) / CPU_BATCHES;
	char *b = buffer(size);
	each = each > 0 ? each : 1;
	periods = malloc(sizeof *periods * (size_t)each);
	MPI_Bcast(&begin, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	next = begin + opt.rank * period / 2;
	rest();
	batch(b, (int)size, each, WINDOW); /* warms up */
	late = 0;
	for (int i = 0; i < CPU_BATCHES; i++) {
		double lone = batch(b, (int)size, each, 1);
		samples[i] = (batch(b, (int)size, each, WINDOW) - lone) / (WINDOW - 1);
	}
	complete();
	samples[CPU_BATCHES] = late;
	MPI_Reduce(samples, sums, CPU_BATCHES + 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (opt.rank == 0) {
		double mid = median_of(sums, CPU_BATCHES);
		print_line(size, "cpu", "us", mid, sums, CPU_BATCHES);
		print_single(size, "late", "windows", sums[CPU_BATCHES]);
	}
	free(periods);
	free(b);
}
