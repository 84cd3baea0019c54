/*
 * The loops of `muster bench` for other MPI libraries: the driver in the
 * folder above builds it once with each library's mpicc and runs it next to ours.
 *
 *   peers BENCH [-s SIZE,SIZE,...] [-i ITERATIONS] [-w WINDOW] [-p THREADS] [-t]
 *               [-d DELAY] [-r RATIO,RATIO,...] [-c MICROSECONDS]
 *
 *   latency      blocking ping-pong of two ranks; half of the round trip
 *   bw, bibw     a window of Isends one way, both ways; a short answer ends it
 *   rate         bw, counted in messages
 *   mt-latency   latency of rank 0 with the threads of rank 1, one after the other
 *   barrier      MPI_Barrier of all ranks
 *   bcast, allreduce, iallreduce and so on   see collective.c
 *   memory-once  every rank sends 8 bytes to every other; then the PSS of each
 *   empty        Init and Finalize; timed from outside
 *   overlap, progress, exchange   see rendezvous.c
 *   put, get, acc, fop   one-sided, see onesided.c
 *   stalls       rounds of alltoall one by one, see stalls.c
 *   cpu          processor time of a paced message, see cpu.c
 *   coll         collectives with process arrival patterns, see skew.c for its options
 *
 * The shape of the loops is that of the OSU micro-benchmarks: a warm-up, then a
 * timed loop over page-aligned buffers that were touched once and are not
 * touched again. -t writes to the buffer before each send and reads it after
 * each receive, so that the data is live. The clock is read once per
 * batch of iterations; min, p50 and p99 are those of the batches.
 *
 * Rank 0 prints one JSON object per line.
 */
#define _GNU_SOURCE
#include "loops.h"
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef OPEN_MPI
#define DEVICE "openmpi"
#else
#define DEVICE "mpich"
#endif

enum { TAG_DATA = 1, TAG_ACK = 2, TAG_THREAD = 100 };

struct options opt = {.window = 64, .threads = 2, .delay = 5, .budget = 2000};

double now(void) /* seconds */
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

void die(const char *why)
{
	fprintf(stderr, "peers: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

/* The counts of `muster bench`: small up to 8 KB, then fewer, but not below large. */
long iterations(long size, long small, long large)
{
	long n = opt.iterations;
	if (n == 0) {
		n = small;
		if (size > 8192)
			n = small * 8192 / size > large ? small * 8192 / size : large;
	}
	return n;
}

long warmup(long n)
{
	return n / 10 > 10 ? n / 10 : 10;
}

/* n iterations make at most BATCHES batches. */
static int batches(long n)
{
	return n < BATCHES ? (int)n : BATCHES;
}

char *buffer(long size)
{
	void *p = NULL;
	if (posix_memalign(&p, (size_t)sysconf(_SC_PAGESIZE), size > 0 ? (size_t)size : 1) != 0)
		die("no memory for the buffers");
	memset(p, 1, size > 0 ? (size_t)size : 1);
	return p;
}

/* Live data: the sender has just written it, the receiver reads it. */
static volatile unsigned long sink;

static void write_data(char *b, long size, long i)
{
	if (opt.touch)
		memset(b, (int)i, (size_t)size);
}

static void read_data(const char *b, long size)
{
	unsigned long sum = 0;
	if (!opt.touch)
		return;
	for (long i = 0; i + 8 <= size; i += 8) {
		uint64_t w;
		memcpy(&w, b + i, 8);
		sum += w;
	}
	sink += sum;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_samples(long size, const char *metric, const char *unit, double value, double *samples, int n, int fewest)
{
	qsort(samples, (size_t)n, sizeof *samples, ascending);
	printf("{\"bench\":\"%s\",\"ranks\":%d,\"device\":\"" DEVICE "\",\"size\":%ld,\"metric\":\"%s\",\"unit\":\"%s\","
	       "\"value\":%.6g,\"min\":%.6g,\"p50\":%.6g",
	       opt.bench, opt.ranks, size, metric, unit, value, samples[0], samples[n / 2]);
	if (n >= fewest)
		printf(",\"p99\":%.6g", samples[(n - 1) * 99 / 100]);
	printf("}\n");
	fflush(stdout);
}

/* value is the mean over the whole loop; samples are those of the batches. */
void print_line(long size, const char *metric, const char *unit, double value, double *samples, int n)
{
	print_samples(size, metric, unit, value, samples, n, 1);
}

/* The same for single calls: of fewer than 100, p99 would be the longest call. */
void print_calls(long size, const char *metric, const char *unit, double value, double *samples, int n)
{
	print_samples(size, metric, unit, value, samples, n, 100);
}

void print_single(long size, const char *metric, const char *unit, double value)
{
	print_line(size, metric, unit, value, &value, 1);
}

double median_of(double *samples, long n)
{
	qsort(samples, (size_t)n, sizeof *samples, ascending);
	return (samples[(n - 1) / 2] + samples[n / 2]) / 2;
}

/* ---- ping-pong ---- */

static void ping_pong(char *s, char *r, int size, int tag, long from, long to)
{
	for (long i = from; i < to; i++) {
		if (opt.rank == 0) {
			write_data(s, size, i);
			MPI_Send(s, size, MPI_CHAR, 1, tag, MPI_COMM_WORLD);
			MPI_Recv(r, size, MPI_CHAR, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			read_data(r, size);
		} else {
			MPI_Recv(r, size, MPI_CHAR, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			read_data(r, size);
			write_data(s, size, i);
			MPI_Send(s, size, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
		}
	}
}

static void latency(long size)
{
	double samples[BATCHES];
	char *s = buffer(size), *r = buffer(size);
	long n = iterations(size, 100000, 200);
	int count = batches(n);
	ping_pong(s, r, (int)size, TAG_DATA, 0, warmup(n));
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now(), last = start;
	for (int b = 0; b < count; b++) {
		long from = n * b / count, to = n * (b + 1) / count;
		ping_pong(s, r, (int)size, TAG_DATA, from, to);
		double t = now();
		samples[b] = (t - last) * 1e6 / (2.0 * (to - from));
		last = t;
	}
	if (opt.rank == 0)
		print_line(size, "latency", "us", (last - start) * 1e6 / (2.0 * n), samples, count);
	free(s);
	free(r);
}

/* ---- latency with threads: rank 0 and the threads of rank 1, one after the other ---- */

struct worker {
	pthread_t thread;
	int index;
	long size, rounds;
};

static void *answer(void *arg)
{
	struct worker *w = arg;
	char *s = buffer(w->size), *r = buffer(w->size);
	ping_pong(s, r, (int)w->size, TAG_THREAD + w->index, 0, w->rounds);
	free(s);
	free(r);
	return NULL;
}

static void round_trips(char *s, char *r, long size, long rounds)
{
	for (long i = 0; i < rounds; i++)
		for (int k = 0; k < opt.threads; k++)
			ping_pong(s, r, (int)size, TAG_THREAD + k, 0, 1);
}

static void mt_latency(long size)
{
	struct worker w[MAX_THREADS];
	double samples[BATCHES];
	long n = iterations(size, 10000, 200) / opt.threads;
	if (n < 1)
		n = 1;
	int count = batches(n);
	if (opt.rank == 1) {
		for (int k = 0; k < opt.threads; k++) {
			w[k].index = k;
			w[k].size = size;
			w[k].rounds = warmup(n) + n;
			if (pthread_create(&w[k].thread, NULL, answer, &w[k]) != 0)
				die("cannot start a thread");
		}
		for (int k = 0; k < opt.threads; k++)
			pthread_join(w[k].thread, NULL);
		return;
	}
	char *s = buffer(size), *r = buffer(size);
	round_trips(s, r, size, warmup(n));
	double start = now(), last = start;
	for (int b = 0; b < count; b++) {
		long from = n * b / count, to = n * (b + 1) / count;
		round_trips(s, r, size, to - from);
		double t = now();
		samples[b] = (t - last) * 1e6 / (2.0 * (to - from) * opt.threads);
		last = t;
	}
	print_line(size, "latency", "us", (last - start) * 1e6 / (2.0 * n * opt.threads), samples, count);
	free(s);
	free(r);
}

/* ---- windows ---- */

/* One window from rank 0 to rank 1, or both ways; then the answer. */
static void window(char *s, char *r, int size, MPI_Request *req, int both, long i)
{
	int n = 0, peer = 1 - opt.rank;
	if (opt.rank == 1 || both)
		for (int k = 0; k < opt.window; k++)
			MPI_Irecv(r, size, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD, &req[n++]);
	if (opt.rank == 0 || both) {
		write_data(s, size, i);
		for (int k = 0; k < opt.window; k++)
			MPI_Isend(s, size, MPI_CHAR, peer, TAG_DATA, MPI_COMM_WORLD, &req[n++]);
	}
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	if (opt.rank == 1 || both)
		read_data(r, size);
	char ack[4] = {0};
	if (opt.rank == 0)
		MPI_Recv(ack, 4, MPI_CHAR, 1, TAG_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(ack, 4, MPI_CHAR, 0, TAG_ACK, MPI_COMM_WORLD);
}

/* per_window is what one window counts: megabytes or messages. */
static void windows(long size, int both, const char *metric, const char *unit, double per_window)
{
	double samples[BATCHES];
	char *s = buffer(size), *r = buffer(size);
	MPI_Request *req = malloc(sizeof *req * 2 * (size_t)opt.window);
	long n = iterations(size, 2000, 10);
	int count = batches(n);
	for (long i = 0; i < warmup(n); i++)
		window(s, r, (int)size, req, both, i);
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now(), last = start;
	for (int b = 0; b < count; b++) {
		long from = n * b / count, to = n * (b + 1) / count;
		for (long i = from; i < to; i++)
			window(s, r, (int)size, req, both, i);
		double t = now();
		samples[b] = per_window * (to - from) / (t - last);
		last = t;
	}
	if (opt.rank == 0)
		print_line(size, metric, unit, per_window * n / (last - start), samples, count);
	free(req);
	free(s);
	free(r);
}

/* ---- all ranks ---- */

static void barrier(void)
{
	double samples[BATCHES], mean, sum;
	long n = iterations(0, 2000, 2000);
	int count = batches(n);
	for (long i = 0; i < warmup(n); i++)
		MPI_Barrier(MPI_COMM_WORLD);
	double start = now(), last = start;
	for (int b = 0; b < count; b++) {
		long from = n * b / count, to = n * (b + 1) / count;
		for (long i = from; i < to; i++)
			MPI_Barrier(MPI_COMM_WORLD);
		double t = now();
		samples[b] = (t - last) * 1e6 / (to - from);
		last = t;
	}
	mean = (last - start) * 1e6 / n;
	MPI_Reduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (opt.rank == 0)
		print_line(0, "latency", "us", sum / opt.ranks, samples, count);
}

static double pss(void) /* KiB */
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	if (f == NULL)
		die("cannot read /proc/self/smaps_rollup; the kernel must be 4.14 or later");
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "Pss: %ld", &kib) == 1)
			break;
	fclose(f);
	return (double)kib;
}

static void memory_once(void)
{
	size_t n = (size_t)opt.ranks;
	int64_t *in = calloc(n, 8), *out = calloc(n, 8);
	MPI_Request *req = malloc(sizeof *req * 2 * n);
	double *all = calloc(n, sizeof *all), mine, sum = 0;
	int k = 0;
	for (int d = 1; d < opt.ranks; d++)
		MPI_Irecv(&in[d], 8, MPI_CHAR, (opt.rank + d) % opt.ranks, TAG_DATA, MPI_COMM_WORLD, &req[k++]);
	for (int d = 1; d < opt.ranks; d++)
		MPI_Isend(&out[d], 8, MPI_CHAR, (opt.rank + d) % opt.ranks, TAG_DATA, MPI_COMM_WORLD, &req[k++]);
	MPI_Waitall(k, req, MPI_STATUSES_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	mine = pss();
	MPI_Barrier(MPI_COMM_WORLD); /* shared pages count in shares: no rank leaves before all have read it */
	MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (size_t i = 0; i < n; i++)
		sum += all[i];
	if (opt.rank == 0)
		print_line(8, "pss", "KiB", sum / opt.ranks, all, opt.ranks);
	free(in);
	free(out);
	free(req);
	free(all);
}

/* ---- command line ---- */

/* The list of numbers that an option has. */
static int numbers(double *out, int most)
{
	int n = 0;
	for (char *p = strtok(optarg, ","); p && n < most; p = strtok(NULL, ","))
		out[n++] = atof(p);
	return n;
}

static void parse(int argc, char **argv)
{
	int c;
	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: peers latency|bw|bibw|rate|mt-latency|barrier|COLLECTIVE|memory-once|empty|overlap|progress|exchange|put|get|acc|fop|coll|stalls|cpu "
				"[-s SIZES] [-i ITERATIONS] [-w WINDOW] [-p THREADS] [-t] [-d DELAY] [-r RATIOS] [-c MICROSECONDS] "
				"[-o COLLECTIVES] [-f FACTORS] [-l PERCENT] [-m MICROSECONDS] [-b MILLISECONDS] [-a]\n");
		exit(2);
	}
	opt.bench = argv[1];
	while ((c = getopt(argc - 1, argv + 1, "s:i:w:p:td:r:c:o:f:l:m:b:a")) != -1) {
		switch (c) {
		case 's':
			for (char *p = strtok(optarg, ","); p && opt.nsizes < MAX_SIZES; p = strtok(NULL, ","))
				opt.sizes[opt.nsizes++] = atol(p);
			break;
		case 'i': opt.iterations = atol(optarg); break;
		case 'w': opt.window = atoi(optarg); break;
		case 'p': opt.threads = atoi(optarg); break;
		case 't': opt.touch = 1; break;
		case 'd': opt.delay = atof(optarg); break;
		case 'r': opt.nratios = numbers(opt.ratios, MAX_RATIOS); break;
		case 'o':
			for (char *p = strtok(optarg, ","); p && opt.nops < MAX_OPS; p = strtok(NULL, ","))
				opt.ops[opt.nops++] = p;
			break;
		case 'f': opt.nfactors = numbers(opt.factors, MAX_RATIOS); break;
		case 'l': opt.nlate = numbers(opt.late, MAX_RATIOS); break;
		case 'm': opt.nmessages = numbers(opt.messages, MAX_SIZES); break;
		case 'b': opt.budget = atof(optarg); break;
		case 'a': opt.sleep = 1; break;
		case 'c': opt.communication = atof(optarg); break;
		default: exit(2);
		}
	}
	if (opt.nsizes == 0)
		opt.sizes[opt.nsizes++] = 8;
	if (opt.nlate == 0)
		opt.nlate = 1; /* 0: random arrivals */
	if (opt.window < 1 || opt.iterations < 0 || opt.threads < 1 || opt.threads > MAX_THREADS) {
		fprintf(stderr, "peers: the window is at least 1, iterations are not negative, threads are 1 to %d\n", MAX_THREADS);
		exit(2);
	}
	int possible = opt.delay > 1 && opt.communication >= 0;
	for (int i = 0; i < opt.nratios; i++)
		possible = possible && opt.ratios[i] > 0;
	if (!possible) {
		fprintf(stderr, "peers: the delay is longer than a transfer (more than 1), ratios are above 0, communication takes time\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	int given, want;
	parse(argc, argv);
	want = strcmp(opt.bench, "mt-latency") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
	MPI_Init_thread(&argc, &argv, want, &given);
	if (given < want)
		die("the library has no MPI_THREAD_MULTIPLE");
	MPI_Comm_rank(MPI_COMM_WORLD, &opt.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &opt.ranks);

	if (strcmp(opt.bench, "barrier") == 0) {
		barrier();
	} else if (is_collective(opt.bench)) {
		for (int i = 0; i < opt.nsizes; i++)
			collective(opt.sizes[i]);
	} else if (strcmp(opt.bench, "coll") == 0) {
		skew();
	} else if (strcmp(opt.bench, "stalls") == 0) {
		for (int i = 0; i < opt.nsizes; i++)
			stalls(opt.sizes[i]);
	} else if (strcmp(opt.bench, "fop") == 0) {
		fetch_add();
	} else if (strcmp(opt.bench, "memory-once") == 0) {
		memory_once();
	} else if (strcmp(opt.bench, "empty") != 0) {
		if (opt.ranks != 2)
			die("this benchmark is for two ranks: start it with -n 2");
		for (int i = 0; i < opt.nsizes; i++) {
			long size = opt.sizes[i];
			double mb = size * 1e-6 * opt.window;
			if (strcmp(opt.bench, "latency") == 0)
				latency(size);
			else if (strcmp(opt.bench, "mt-latency") == 0)
				mt_latency(size);
			else if (strcmp(opt.bench, "bw") == 0)
				windows(size, 0, "bandwidth", "MB/s", mb);
			else if (strcmp(opt.bench, "bibw") == 0)
				windows(size, 1, "bandwidth", "MB/s", 2 * mb);
			else if (strcmp(opt.bench, "rate") == 0)
				windows(size, 0, "rate", "msg/s", opt.window);
			else if (strcmp(opt.bench, "cpu") == 0)
				cpu(size);
			else if (is_window(opt.bench))
				one_sided(size);
			else if (strcmp(opt.bench, "overlap") == 0)
				overlap(size);
			else if (strcmp(opt.bench, "progress") == 0)
				progress(size);
			else if (strcmp(opt.bench, "exchange") == 0)
				exchange(size);
			else
				die("unknown benchmark; run it without arguments for the list");
		}
	}
	MPI_Finalize();
	return 0;
}
