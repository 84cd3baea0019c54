/* Declarations shared by peers.c and the other loops of the peers. */
#ifndef LOOPS_H
#define LOOPS_H

enum { BATCHES = 50, MAX_SIZES = 32, MAX_THREADS = 16, MAX_RATIOS = 32, MAX_OPS = 16 };

struct options {
	const char *bench;
	long sizes[MAX_SIZES];
	int nsizes;
	long iterations; /* 0: by size */
	int window, threads, touch;
	double delay;              /* progress: multiple of the transfer time */
	double ratios[MAX_RATIOS]; /* exchange: communication to computation */
	int nratios;
	double communication; /* exchange: µs; 0: measured */
	/* coll: see skew.c */
	char *ops[MAX_OPS];
	int nops, sleep;
	double factors[MAX_RATIOS], late[MAX_RATIOS], messages[MAX_SIZES];
	int nfactors, nlate, nmessages;
	double budget; /* ms */
	int rank, ranks;
};

extern struct options opt;

double now(void); /* seconds */
void die(const char *why);
long iterations(long size, long small, long large);
long warmup(long n);
char *buffer(long size);
/* Prints one figure; value is the main statistic, samples (n of them, sorted here) give the others. */
void print_line(long size, const char *metric, const char *unit, double value, double *samples, int n);
void print_calls(long size, const char *metric, const char *unit, double value, double *samples, int n);
void print_single(long size, const char *metric, const char *unit, double value);
double median_of(double *samples, long n); /* sorts them */

/* rendezvous.c: a computation that makes no call */
void calibrate(void);
long iterations_of(double us);
double timed_compute(long iterations); /* µs */
void overlap(long size);
void progress(long size);
void exchange(long size);

/* collective.c */
int is_collective(const char *name);
void collective(long size);
struct call;
struct call *prepare_call(const char *name, long size); /* of a blocking collective, with its buffers */
void make_call(struct call *c);
void release_call(struct call *c);

/* onesided.c */
int is_window(const char *name);
void one_sided(long size);
void fetch_add(void);

/* skew.c */
void skew(void);

/* stalls.c */
void stalls(long size);

/* cpu.c */
void cpu(long size);
double cpu_used(void); /* user and system time of this process, µs */

#endif
