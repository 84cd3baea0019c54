/*
 * The loops of `muster bench` for collectives, for other MPI libraries:
 * bench/collective.go in C, in the same order and
 * with the same counts. They are those of the OSU micro-benchmarks.
 *
 * A blocking collective is timed at every rank, call by call, with a barrier after
 * each, so that no rank runs ahead; the figure is the mean over ranks. A
 * non-blocking one (its name begins with i) is timed alone, then with a computation
 * of the same length between the call and MPI_Wait; the share that the computation
 * hides is 100 - 100 * (overall - computation) / alone, not below 0.
 *
 * A size is that of one block (gather, scatter, allgather, alltoall and their v
 * forms), of the data (bcast) or of the vector of doubles (reduce, allreduce, scan,
 * exscan; reduce-scatter cuts it among the ranks). The v forms have equal blocks.
 */
#include "loops.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A collective with its buffers. */
struct call {
	char *in, *out;
	int size, elements;           /* bytes of a block, doubles of a vector */
	int *counts, *displs, *parts; /* of blocks in bytes; of parts of the vector */
	MPI_Request request;
	int which; /* of calls */
};

#define BLOCKS c->in, c->size, MPI_CHAR, c->out, c->size, MPI_CHAR
#define VECTORS c->in, c->out, c->elements, MPI_DOUBLE, MPI_SUM
#define WORLD MPI_COMM_WORLD

/* The collectives: the name in the blocking and the non-blocking function, whether the buffers
 * have a block for every rank, and the arguments. */
#define COLLECTIVES(X) \
	X(Bcast, bcast, 0, 0, c->in, c->size, MPI_CHAR, 0, WORLD) \
	X(Gather, gather, 0, 1, BLOCKS, 0, WORLD) \
	X(Gatherv, gatherv, 0, 1, c->in, c->size, MPI_CHAR, c->out, c->counts, c->displs, MPI_CHAR, 0, WORLD) \
	X(Scatter, scatter, 1, 0, BLOCKS, 0, WORLD) \
	X(Scatterv, scatterv, 1, 0, c->in, c->counts, c->displs, MPI_CHAR, c->out, c->size, MPI_CHAR, 0, WORLD) \
	X(Allgather, allgather, 0, 1, BLOCKS, WORLD) \
	X(Allgatherv, allgatherv, 0, 1, c->in, c->size, MPI_CHAR, c->out, c->counts, c->displs, MPI_CHAR, WORLD) \
	X(Alltoall, alltoall, 1, 1, BLOCKS, WORLD) \
	X(Alltoallv, alltoallv, 1, 1, c->in, c->counts, c->displs, MPI_CHAR, c->out, c->counts, c->displs, MPI_CHAR, WORLD) \
	X(Reduce, reduce, 0, 0, VECTORS, 0, WORLD) \
	X(Allreduce, allreduce, 0, 0, VECTORS, WORLD) \
	X(Reduce_scatter, reduce_scatter, 0, 0, c->in, c->out, c->parts, MPI_DOUBLE, MPI_SUM, WORLD) \
	X(Scan, scan, 0, 0, VECTORS, WORLD) \
	X(Exscan, exscan, 0, 0, VECTORS, WORLD)

#define FUNCTIONS(Name, name, in, out, ...) \
	static void run_##name(struct call *c) { MPI_##Name(__VA_ARGS__); } \
	static void run_i##name(struct call *c) { MPI_I##name(__VA_ARGS__, &c->request); }
COLLECTIVES(FUNCTIONS)

static void run_ibarrier(struct call *c)
{
	MPI_Ibarrier(WORLD, &c->request);
}

#define ROWS(Name, name, in, out, ...) {#name, run_##name, in, out, 0}, {"i" #name, run_i##name, in, out, 1},
static const struct {
	const char *name; /* with _ for - */
	void (*run)(struct call *);
	int in_blocks, out_blocks; /* of the buffers: one for every rank */
	int waits;                 /* non-blocking */
} calls[] = {COLLECTIVES(ROWS){"ibarrier", run_ibarrier, 0, 0, 1}};

enum { CALLS = sizeof calls / sizeof calls[0] };

static int find_call(const char *name)
{
	char as[32];
	snprintf(as, sizeof as, "%s", name);
	for (char *dash = as; (dash = strchr(dash, '-')) != NULL;)
		*dash = '_';
	for (int i = 0; i < CALLS; i++)
		if (strcmp(calls[i].name, as) == 0)
			return i;
	return -1;
}

int is_collective(const char *name)
{
	return find_call(name) >= 0;
}

/* Where part k of n begins, split evenly over the ranks. */
static int part_begin(int n, int k)
{
	return (int)((long)n * k / opt.ranks);
}

static struct call prepare(int which, long size)
{
	struct call c = {.size = (int)size, .which = which};
	long room = size < 8 ? 8 : size; /* a vector has at least one element */
	c.elements = (int)(room / 8);
	c.in = buffer(room * (calls[which].in_blocks ? opt.ranks : 1));
	c.out = buffer(room * (calls[which].out_blocks ? opt.ranks : 1));
	memset(c.in, 0, (size_t)room * (calls[which].in_blocks ? (size_t)opt.ranks : 1)); /* sums must stay numbers */
	c.counts = malloc(sizeof(int) * (size_t)opt.ranks);
	c.displs = malloc(sizeof(int) * (size_t)opt.ranks);
	c.parts = malloc(sizeof(int) * (size_t)opt.ranks);
	for (int k = 0; k < opt.ranks; k++) {
		c.counts[k] = (int)size;
		c.displs[k] = (int)size * k;
		c.parts[k] = part_begin(c.elements, k + 1) - part_begin(c.elements, k);
	}
	return c;
}

static void release(struct call *c)
{
	free(c->in);
	free(c->out);
	free(c->counts);
	free(c->displs);
	free(c->parts);
}

/* Computes at rank 0 the means over ranks of n figures. */
static void over_ranks(double *figures, int n)
{
	double sums[BATCHES];
	MPI_Reduce(figures, sums, n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	for (int i = 0; i < n && opt.rank == 0; i++)
		figures[i] = sums[i] / opt.ranks;
}

/* µs at this rank of one call, and of the computation in it if there is one. */
static double once(int which, struct call *c, long iterations, double *computed)
{
	double start = now();
	calls[which].run(c);
	if (iterations > 0)
		*computed += timed_compute(iterations);
	if (calls[which].waits)
		MPI_Wait(&c->request, MPI_STATUS_IGNORE);
	return (now() - start) * 1e6;
}

/* Fills samples with the mean of each batch of calls, and returns the mean of all. */
static double loop(int which, struct call *c, long n, long iterations, double *samples, double *computed)
{
	int count = n < BATCHES ? (int)n : BATCHES;
	double total = 0;
	*computed = 0;
	for (int b = 0; b < count; b++) {
		long from = n * b / count, to = n * (b + 1) / count;
		samples[b] = 0;
		for (long i = from; i < to; i++) {
			samples[b] += once(which, c, iterations, computed);
			MPI_Barrier(MPI_COMM_WORLD);
		}
		total += samples[b];
		samples[b] /= to - from;
	}
	*computed /= n;
	over_ranks(samples, count);
	return total / n;
}

void collective(long size)
{
	int which = find_call(opt.bench);
	struct call c = prepare(which, size);
	long n = iterations(size, 1000, 100);
	int count = n < BATCHES ? (int)n : BATCHES;
	double samples[BATCHES], figures[3], nothing;
	calibrate();
	for (long i = 0; i < warmup(n); i++) {
		once(which, &c, 0, &nothing);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	double alone = loop(which, &c, n, 0, samples, &nothing);
	figures[0] = alone;
	if (!calls[which].waits) {
		over_ranks(figures, 1);
		if (opt.rank == 0)
			print_line(size, "latency", "us", figures[0], samples, count);
		release(&c);
		return;
	}
	/* Each rank computes for as long as the call takes there. */
	figures[1] = loop(which, &c, n, iterations_of(alone), samples, &figures[2]);
	over_ranks(figures, 3);
	if (opt.rank == 0) {
		double share = 100 - 100 * (figures[1] - figures[2]) / figures[0];
		print_single(size, "overlap", "%", share > 0 ? share : 0);
		print_single(size, "alone", "us", figures[0]);
		print_single(size, "overall", "us", figures[1]);
		print_single(size, "computation", "us", figures[2]);
	}
	release(&c);
}

/* ---- for skew.c ---- */

struct call *prepare_call(const char *name, long size)
{
	struct call *c = malloc(sizeof *c);
	if (c == NULL)
		die("no memory for a call");
	*c = prepare(find_call(name), size);
	return c;
}

void make_call(struct call *c)
{
	calls[c->which].run(c);
}

void release_call(struct call *c)
{
	release(c);
	free(c);
}
