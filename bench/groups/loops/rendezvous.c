/*
 * The loops of `muster bench overlap`, `progress` and `exchange` for other MPI
 * libraries: bench/scenario.go, growth.go, overlap.go, progress.go and exchange.go
 * in C, in the same order and with the same rules and constants. See there for the
 * definitions.
 *
 * Rank 0 is the tested side: it computes or delays between its non-blocking call
 * and MPI_Wait, while rank 1 stays in the library. The rank that comes first makes
 * its call and then sends a short message, which the other receives before its own.
 */
#include "loops.h"
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_DATA = 11, TAG_GO = 12, TAG_AWAKE = 13, TAG_ORDER = 14, TAG_TELL = 15, TAG_EXCHANGE = 16 };

/* ---- a computation that makes no call ---- */

static struct {
	uint64_t state;
	double loop_micros, read_micros;
} work = {.state = 88172645463325252ULL};

static __attribute__((noinline)) void compute(long iterations)
{
	uint64_t x = work.state;
	for (long i = 0; i < iterations; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	work.state = x;
}

static double micros_since(double start)
{
	return (now() - start) * 1e6;
}

void calibrate(void)
{
	enum { TRIES = 50, TURNS = 20000 };
	if (work.loop_micros > 0)
		return;
	work.loop_micros = work.read_micros = 1;
	for (int i = 0; i < TRIES; i++) {
		double start = now();
		compute(TURNS);
		work.loop_micros = fmin(work.loop_micros, micros_since(start) / TURNS);
		start = now();
		work.read_micros = fmin(work.read_micros, micros_since(start));
	}
}

long iterations_of(double us)
{
	return (long)(us / work.loop_micros + .5);
}

double timed_compute(long iterations)
{
	double start = now();
	compute(iterations);
	return fmax(0, micros_since(start) - work.read_micros);
}

/* ---- samples ---- */

struct samples {
	double *v;
	int n;
};

static struct samples new_samples(long n)
{
	struct samples s = {malloc(sizeof(double) * (size_t)(n > 0 ? n : 1)), 0};
	if (s.v == NULL)
		die("no memory for the samples");
	return s;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(const double *v, int n)
{
	double *sorted = malloc(sizeof(double) * (size_t)n), m;
	memcpy(sorted, v, sizeof(double) * (size_t)n);
	qsort(sorted, (size_t)n, sizeof *sorted, ascending);
	m = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
	free(sorted);
	return m;
}

static void print_median(long size, const char *metric, const char *unit, struct samples *s)
{
	print_line(size, metric, unit, median(s->v, s->n), s->v, s->n);
}

static void print_mean(long size, const char *metric, const char *unit, struct samples *s)
{
	double sum = 0;
	for (int i = 0; i < s->n; i++)
		sum += s->v[i];
	print_line(size, metric, unit, sum / s->n, s->v, s->n);
}

/* ---- one transfer in a timing scenario ---- */

struct transfer {
	char *buf;
	int size, peer, sends, early, tested_sends, sender_first;
	int stamped; /* record when the non-blocking call returned */
	double returned;
	char name[64];
};

static struct transfer new_transfer(long size, int tested_sends, int sender_first)
{
	struct transfer t = {.buf = buffer(size), .size = (int)size, .peer = 1 - opt.rank, .tested_sends = tested_sends, .sender_first = sender_first};
	t.sends = tested_sends == (opt.rank == 0);
	t.early = sender_first == t.sends;
	snprintf(t.name, sizeof t.name, "%s/%s", tested_sends ? "send" : "recv", sender_first ? "sender-first" : "receiver-first");
	memset(t.buf, 1 + opt.rank, (size_t)size);
	return t;
}

static void awake(const struct transfer *t)
{
	char c = 0;
	for (int i = 0; i < 2; i++) {
		if (opt.rank == 0)
			MPI_Send(&c, 1, MPI_CHAR, t->peer, TAG_AWAKE, MPI_COMM_WORLD);
		MPI_Recv(&c, 1, MPI_CHAR, t->peer, TAG_AWAKE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (opt.rank == 1)
			MPI_Send(&c, 1, MPI_CHAR, t->peer, TAG_AWAKE, MPI_COMM_WORLD);
	}
}

/* Waits until this rank is to call, and makes the call; returns the time of the call. */
static double begin(struct transfer *t, MPI_Request *req)
{
	char c = 0;
	if (!t->early)
		MPI_Recv(&c, 1, MPI_CHAR, t->peer, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	double start = now();
	if (t->sends)
		MPI_Issend(t->buf, t->size, MPI_CHAR, t->peer, TAG_DATA, MPI_COMM_WORLD, req);
	else
		MPI_Irecv(t->buf, t->size, MPI_CHAR, t->peer, TAG_DATA, MPI_COMM_WORLD, req);
	if (t->stamped)
		t->returned = now();
	if (t->early)
		MPI_Send(&c, 1, MPI_CHAR, t->peer, TAG_GO, MPI_COMM_WORLD);
	return start;
}

static double run(struct transfer *t, long iterations)
{
	MPI_Request req;
	double start = begin(t, &req);
	if (iterations > 0)
		compute(iterations);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	return micros_since(start);
}

static void order(long n)
{
	MPI_Send(&n, 1, MPI_LONG, 1, TAG_ORDER, MPI_COMM_WORLD);
}

/* Makes rank 1 take part in n transfers; 0: ends it. */
static long next_order(void)
{
	long n;
	MPI_Recv(&n, 1, MPI_LONG, 0, TAG_ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return n;
}

/* ---- overlap ---- */

enum { FEWEST_HIDDEN = 15 };

struct step {
	double l0, cm, lm;
};

static double one_transfer(struct transfer *t, long iterations)
{
	if (opt.touch && t->sends)
		memset(t->buf, t->buf[0] + 1, (size_t)t->size);
	awake(t);
	return run(t, iterations);
}

/* If hidden is not NULL, it gets the share of the computation that each sample has hidden, in percent. */
static struct step sample(struct transfer *t, long n, long loop, double *hidden)
{
	struct samples without = new_samples(n), alone = new_samples(2 * n), with = new_samples(n);
	order(2 * n);
	for (long i = 0; i < n; i++) {
		double times[2];
		int first = (int)(work.state >> 40 & 1);
		for (int k = 0; k < 2; k++) {
			int computes = k == 0 ? first : 1 - first;
			alone.v[alone.n++] = timed_compute(loop);
			times[computes] = one_transfer(t, loop * computes);
		}
		without.v[without.n++] = times[0];
		with.v[with.n++] = times[1];
		if (hidden != NULL) {
			double c = (alone.v[2 * i] + alone.v[2 * i + 1]) / 2;
			hidden[i] = (c + times[0] - times[1]) / c * 100;
		}
	}
	struct step s = {median(without.v, without.n), median(alone.v, alone.n), median(with.v, with.n)};
	free(without.v);
	free(alone.v);
	free(with.v);
	return s;
}

static struct step grow(struct transfer *t, long n, double l0)
{
	struct step last = {0, 0, 0};
	double c = 0.05 * l0;
	int failed = 0;
	for (int m = 0; m < 80; m++, c *= 1.1) {
		struct step s = sample(t, n, iterations_of(c), NULL);
		failed = s.lm < 1.1 * s.l0 ? 0 : failed + 1;
		if (m == 0 || failed == 0)
			last = s;
		if (failed == 3)
			break;
	}
	return last;
}

static void overlap_of(struct transfer *t)
{
	long asked;
	char metric[96];
	if (opt.rank == 1) {
		while ((asked = next_order()) > 0)
			while (asked-- > 0)
				one_transfer(t, 0);
		return;
	}
	long n = iterations(t->size, 400, 31);
	struct step s = sample(t, warmup(n), 0, NULL);
	static const double shares[] = {0.25, 0.5, 0.9}; /* of the transfer */
	long many = n > FEWEST_HIDDEN ? n : FEWEST_HIDDEN;
	struct samples hidden = new_samples(many);
	for (int i = 0; i < 3; i++) {
		sample(t, many, iterations_of(shares[i] * s.l0), hidden.v);
		if (i < 2)
			snprintf(metric, sizeof metric, "%s/hidden-%g", t->name, shares[i] * 100);
		else
			snprintf(metric, sizeof metric, "%s", t->name);
		double mid = median(hidden.v, many);
		print_line(t->size, metric, "%", mid, hidden.v, (int)many);
	}
	free(hidden.v);
	s = grow(t, n, s.l0);
	order(0);
	snprintf(metric, sizeof metric, "%s/growing", t->name);
	print_single(t->size, metric, "%", (s.cm - (s.lm - s.l0)) / s.l0 * 100);
	snprintf(metric, sizeof metric, "%s/latency", t->name);
	print_line(t->size, metric, "us", s.l0, &s.l0, 1);
}

/* ---- progress ---- */

struct delayed {
	double latency, delay, wait, in_call, pages;
	int last_byte;
};

static int holds(const char *buf, long i, unsigned char value)
{
	return i >= 0 && ((const volatile unsigned char *)buf)[i] == value;
}

static double pages_there(const struct transfer *t, unsigned char value)
{
	enum { PAGE = 4096 };
	int there = 0, all = 0;
	for (long end = t->size; end > 0; end -= PAGE, all++)
		there += holds(t->buf, end - 1, value);
	return (double)there / (all > 0 ? all : 1);
}

static void delay(struct transfer *t, long iterations, unsigned char value, struct delayed *d)
{
	enum { LOOKS = 101 };
	if (!t->sends)
		d->in_call = pages_there(t, value);
	for (int i = 0; i < LOOKS; i++) {
		compute(iterations / LOOKS + 1);
		if (!t->sends && !d->last_byte)
			d->last_byte = holds(t->buf, t->size - 1, value);
	}
	if (!t->sends)
		d->pages = pages_there(t, value) - d->in_call;
}

static struct delayed delayed_transfer(struct transfer *t, unsigned char *value, long iterations)
{
	struct delayed d = {0, 0, 0, 0, 0, 0};
	MPI_Request req;
	*value = (unsigned char)(*value % 250 + 1);
	if (t->sends)
		memset(t->buf, *value, (size_t)t->size);
	awake(t);
	double start = begin(t, &req);
	if (iterations > 0)
		delay(t, iterations, *value, &d);
	double waiting = now();
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	double end = now(), told;
	d.latency = (end - start) * 1e6;
	d.delay = (waiting - t->returned) * 1e6;
	d.wait = (end - waiting) * 1e6;
	told = d.latency;
	if (opt.rank == 1) {
		MPI_Send(&told, 1, MPI_DOUBLE, 0, TAG_TELL, MPI_COMM_WORLD);
	} else {
		MPI_Recv(&told, 1, MPI_DOUBLE, 1, TAG_TELL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (t->sends)
			d.latency = told;
	}
	return d;
}

static void print_part(const struct transfer *t, const char *part, const char *unit, struct samples *s, int mean)
{
	char metric[96];
	snprintf(metric, sizeof metric, "%s%s", t->name, part);
	if (mean)
		print_mean(t->size, metric, unit, s);
	else
		print_median(t->size, metric, unit, s);
	free(s->v);
}

static void progress_of(struct transfer *t)
{
	unsigned char value = 0;
	t->stamped = 1;
	long asked, n = iterations(t->size, 200, 31), cold = warmup(n) > n / 2 ? warmup(n) : n / 2;
	if (opt.rank == 1) {
		while ((asked = next_order()) > 0)
			while (asked-- > 0)
				delayed_transfer(t, &value, 0);
		return;
	}
	struct samples base = new_samples(cold), without = new_samples(n), with = new_samples(n), done = new_samples(n);
	struct samples left = new_samples(n), seen = new_samples(n), in_call = new_samples(n), pages = new_samples(n);
	order(cold + 2 * n);
	for (long i = 0; i < cold; i++)
		base.v[base.n++] = delayed_transfer(t, &value, 0).latency;
	long iterations = iterations_of(opt.delay * median(base.v + base.n / 2, base.n - base.n / 2));
	for (long i = 0; i < n; i++) {
		without.v[without.n++] = delayed_transfer(t, &value, 0).latency;
		struct delayed d = delayed_transfer(t, &value, iterations);
		double l0 = median(without.v, without.n);
		with.v[with.n++] = d.latency;
		left.v[left.n++] = d.wait;
		done.v[done.n++] = (1 - fmax(0, d.latency - d.delay) / l0) * 100;
		seen.v[seen.n++] = d.last_byte ? 100 : 0;
		in_call.v[in_call.n++] = d.in_call * 100;
		pages.v[pages.n++] = d.pages * 100;
	}
	order(0);
	double l0 = median(without.v, without.n);
	for (int i = 0; i < left.n; i++)
		left.v[i] *= 100 / l0;
	print_part(t, "", "%", &done, 0);
	print_part(t, "/left", "%", &left, 0);
	if (!t->tested_sends) {
		print_part(t, "/last-byte", "%", &seen, 1);
		print_part(t, "/pages-in-call", "%", &in_call, 1);
		print_part(t, "/pages", "%", &pages, 1);
	} else {
		free(seen.v);
		free(in_call.v);
		free(pages.v);
	}
	print_part(t, "/latency", "us", &without, 0);
	print_part(t, "/delayed", "us", &with, 0);
	free(base.v);
}

static void each_scenario(long size, void (*measure)(struct transfer *))
{
	calibrate();
	for (int i = 0; i < 4; i++) {
		struct transfer t = new_transfer(size, i / 2, i % 2);
		measure(&t);
		free(t.buf);
	}
}

void overlap(long size)
{
	each_scenario(size, overlap_of);
}

void progress(long size)
{
	each_scenario(size, progress_of);
}

/* ---- exchange ---- */

enum { BATCH = 20, ROW = 1024 };

struct partner {
	char *data, *out, *in;
	int size, model;
};

static void pack(struct partner *x)
{
	for (int at = 0; at < x->size; at += ROW)
		memcpy(x->out + at, x->data + 2 * at, (size_t)(x->size - at < ROW ? x->size - at : ROW));
}

static void iterate(struct partner *x, int i, long half)
{
	MPI_Request sent, received;
	int peer = 1 - opt.rank;
	if (x->model == 1)
		MPI_Irecv(x->in, x->size, MPI_CHAR, peer, TAG_EXCHANGE, MPI_COMM_WORLD, &received);
	pack(x);
	MPI_Isend(x->out, x->size, MPI_CHAR, peer, TAG_EXCHANGE, MPI_COMM_WORLD, &sent);
	if (x->model == 2) {
		if (i > 0)
			compute(half); /* consume the last data */
		MPI_Irecv(x->in, x->size, MPI_CHAR, peer, TAG_EXCHANGE, MPI_COMM_WORLD, &received);
	}
	compute(half); /* produce */
	MPI_Wait(&sent, MPI_STATUS_IGNORE);
	MPI_Wait(&received, MPI_STATUS_IGNORE);
	if (x->model == 1)
		compute(half); /* consume */
}

static double batch(struct partner *x, double computation)
{
	long half = iterations_of(computation / 2);
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now();
	compute(half); /* produce the first */
	for (int i = 0; i < BATCH; i++)
		iterate(x, i, half);
	if (x->model == 2)
		compute(half); /* consume the last */
	return micros_since(start) / BATCH;
}

static double exchange_model(struct partner *x, double communication)
{
	char metric[64];
	long n = iterations(x->size, 2000, 500), count = n / BATCH > 5 ? n / BATCH : 5;
	for (long i = 0; i < warmup(n) / BATCH || i < 1; i++)
		batch(x, 0);
	struct samples bare = new_samples(count), times[MAX_RATIOS];
	for (long i = 0; i < count; i++)
		bare.v[bare.n++] = batch(x, 0);
	if (communication == 0) {
		communication = median(bare.v, bare.n);
		MPI_Bcast(&communication, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	}
	for (int r = 0; r < opt.nratios; r++)
		times[r] = new_samples(count);
	for (long i = 0; i < count; i++)
		for (int r = 0; r < opt.nratios; r++)
			times[r].v[times[r].n++] = batch(x, communication / opt.ratios[r]);
	snprintf(metric, sizeof metric, "model-%d/communication", x->model);
	if (opt.rank == 0)
		print_median(x->size, metric, "us", &bare);
	for (int r = 0; r < opt.nratios; r++) {
		snprintf(metric, sizeof metric, "model-%d/%g", x->model, opt.ratios[r]);
		if (opt.rank == 0)
			print_median(x->size, metric, "us", &times[r]);
		free(times[r].v);
	}
	free(bare.v);
	return communication;
}

void exchange(long size)
{
	static const double usual[] = {0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1, 1.5, 2, 4};
	double communication = opt.communication;
	calibrate();
	if (opt.nratios == 0) {
		opt.nratios = (int)(sizeof usual / sizeof *usual);
		memcpy(opt.ratios, usual, sizeof usual);
	}
	struct partner x = {buffer(2 * (size + ROW)), buffer(size), buffer(size), (int)size, 1};
	for (; x.model <= 2; x.model++)
		communication = exchange_model(&x, communication);
	free(x.data);
	free(x.out);
	free(x.in);
}
