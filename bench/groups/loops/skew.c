/*
 * The loop of `muster bench coll` for other MPI libraries: bench/skew.go and
 * bench/skew_run.go in C, with the same arrivals, counts and figures. See there
 * for the definitions.
 *
 *   coll -o COLLECTIVE,... -s SIZE,... -f MIF,... [-l LATE,...] [-m MICROSECONDS,...] [-b MILLISECONDS] [-a]
 *
 * LATE is a share of the ranks in percent, 0 for random arrivals. -m is the assumed
 * time of a message, one for each size or one for all; otherwise it is measured. -a
 * makes a delayed rank sleep instead of compute.
 *
 * One call: barrier, delay, arrival, the call, exit. Arrivals and exits are gathered
 * after the loop and a last barrier.
 */
#define _GNU_SOURCE
#include "loops.h"
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FEWEST_CALLS = 5, MOST_CALLS = 1000, PINGS = 30, TAG_PING = 1 };

static const double shortest_sleep = 100; /* µs */

static double chance(long call, int rank)
{
	uint64_t x = ((uint64_t)call << 32) + (uint64_t)rank + 1;
	for (int i = 0; i < 2; i++) {
		x += 0x9e3779b97f4a7c15;
		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
		x = (x ^ x >> 27) * 0x94d049bb133111eb;
		x ^= x >> 31;
	}
	return (double)(x >> 11) / 9007199254740992.0;
}

/* Delay of this rank before a call, µs. */
static double away(long call, double mif, double late, double message)
{
	double most = mif * message, mine = chance(call, opt.rank);
	int before = 0, share = (int)(late * opt.ranks + .5);
	if (late == 0)
		return mine * most;
	for (int r = 0; r < opt.ranks; r++) {
		double c = chance(call, r);
		before += c < mine || (c == mine && r < opt.rank);
	}
	return before < (share > 1 ? share : 1) ? most : 0;
}

static void stay_away(double us)
{
	if (opt.sleep && us >= shortest_sleep) {
		struct timespec t = {(time_t)(us / 1e6), (long)fmod(us * 1e3, 1e9)};
		nanosleep(&t, NULL);
		return;
	}
	timed_compute(iterations_of(us));
}

struct moment {
	double arrival, exit;
	double cpu; /* µs, with the barrier */
};

static struct moment once(struct call *c, long call, double mif, double late, double message)
{
	struct moment m;
	double before = cpu_used();
	MPI_Barrier(MPI_COMM_WORLD);
	stay_away(away(call, mif, late, message));
	m.arrival = now();
	make_call(c);
	m.exit = now();
	m.cpu = cpu_used() - before;
	return m;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Half a round trip of a message between rank 0 and the last, µs. */
static double message_time(long size)
{
	double trips[PINGS], half = 0;
	int last = opt.ranks - 1;
	char *b = buffer(size);
	for (int i = 0; i < 2 * PINGS && last > 0; i++) {
		double start = now();
		if (opt.rank == 0) {
			MPI_Send(b, (int)size, MPI_CHAR, last, TAG_PING, MPI_COMM_WORLD);
			MPI_Recv(b, (int)size, MPI_CHAR, last, TAG_PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (opt.rank == last) {
			MPI_Recv(b, (int)size, MPI_CHAR, 0, TAG_PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(b, (int)size, MPI_CHAR, 0, TAG_PING, MPI_COMM_WORLD);
		}
		trips[i % PINGS] = (now() - start) * 1e6; /* the first PINGS warm up */
	}
	if (last > 0) {
		qsort(trips, PINGS, sizeof *trips, ascending);
		half = (trips[(PINGS - 1) / 2] + trips[PINGS / 2]) / 4;
	}
	MPI_Bcast(&half, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	free(b);
	return half;
}

/* Prints the figures of n calls: mean, bound and CPU time as means over the calls, tail as the median over the calls. */
static void print_pattern(const char *name, long size, const struct moment *all, long n)
{
	double *mean = malloc(sizeof(double) * (size_t)n * 4), *bound = mean + n, *tail = bound + n, *cpu = tail + n;
	double means = 0, bounds = 0, cpus = 0;
	char metric[128];
	for (long i = 0; i < n; i++) {
		double last_in = 0, last_out = 0;
		for (int r = 0; r < opt.ranks; r++) {
			last_in = fmax(last_in, all[r * n + i].arrival);
			last_out = fmax(last_out, all[r * n + i].exit);
		}
		mean[i] = bound[i] = cpu[i] = 0;
		for (int r = 0; r < opt.ranks; r++) {
			mean[i] += (all[r * n + i].exit - all[r * n + i].arrival) * 1e6 / opt.ranks;
			bound[i] += (last_in - all[r * n + i].arrival) * 1e6 / opt.ranks;
			cpu[i] += all[r * n + i].cpu;
		}
		tail[i] = (last_out - last_in) * 1e6;
		means += mean[i] / n;
		bounds += bound[i] / n;
		cpus += cpu[i] / n;
	}
	snprintf(metric, sizeof metric, "%s/mean", name);
	print_calls(size, metric, "us", means, mean, (int)n);
	snprintf(metric, sizeof metric, "%s/bound", name);
	print_calls(size, metric, "us", bounds, bound, (int)n);
	snprintf(metric, sizeof metric, "%s/cpu", name);
	print_calls(size, metric, "us", cpus, cpu, (int)n);
	mean[0] = bounds > 0 ? means / bounds : 0;
	snprintf(metric, sizeof metric, "%s/mean-by-bound", name);
	print_calls(size, metric, "ratio", mean[0], mean, 1);
	qsort(tail, (size_t)n, sizeof *tail, ascending);
	snprintf(metric, sizeof metric, "%s/tail", name);
	print_calls(size, metric, "us", (tail[(n - 1) / 2] + tail[n / 2]) / 2, tail, (int)n);
	free(mean);
}

static void pattern(const char *op, long size, double mif, double late, double message)
{
	struct call *c = prepare_call(op, size);
	long n = opt.iterations;
	double start = now();
	for (int i = 0; i < FEWEST_CALLS; i++)
		once(c, MOST_CALLS + i, mif, late, message);
	if (n == 0) {
		n = (long)(opt.budget * 1e-3 / ((now() - start) / FEWEST_CALLS));
		n = n < FEWEST_CALLS ? FEWEST_CALLS : n > MOST_CALLS ? MOST_CALLS : n;
	}
	MPI_Bcast(&n, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	struct moment *mine = malloc(sizeof *mine * (size_t)n), *all = NULL;
	if (opt.rank == 0)
		all = malloc(sizeof *all * (size_t)n * (size_t)opt.ranks);
	for (long i = 0; i < n; i++)
		mine[i] = once(c, i, mif, late, message);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Gather(mine, (int)n * 3, MPI_DOUBLE, all, (int)n * 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	if (opt.rank == 0) {
		char name[96];
		if (late == 0)
			snprintf(name, sizeof name, "%s/mif-%g", op, mif);
		else
			snprintf(name, sizeof name, "%s/mif-%g-late-%g", op, mif, round(late * 1000) / 10);
		print_pattern(name, size, all, n);
	}
	free(mine);
	free(all);
	release_call(c);
}

void skew(void)
{
	calibrate();
	for (int o = 0; o < opt.nops; o++) {
		if (!is_collective(opt.ops[o]) || opt.ops[o][0] == 'i')
			die("coll takes blocking collectives: alltoall, allgather, bcast, reduce, allreduce and so on");
		for (int i = 0; i < opt.nsizes; i++) {
			double message = opt.nmessages == 0 ? message_time(opt.sizes[i])
				: opt.messages[i < opt.nmessages ? i : opt.nmessages - 1];
			for (int f = 0; f < opt.nfactors; f++)
				for (int l = 0; l < opt.nlate; l++)
					pattern(opt.ops[o], opt.sizes[i], opt.factors[f], opt.late[l] / 100, message);
		}
	}
}
