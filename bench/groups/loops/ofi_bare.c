/*
 * libfabric driven bare: the loops of `muster bench latency` and `bw` on one
 * provider without a layer above it. The difference to Muster over the same provider
 * is the overhead of Muster.
 *
 *   ofi_bare latency|bw [-f PROVIDER] [-a ADDRESS] [-s SIZE,SIZE,...] [-i ITERATIONS] [-w WINDOW]
 *
 * It starts two processes, binds one to each of the first two cores, and opens in
 * each a reliable-datagram endpoint at ADDRESS (127.0.0.1) of PROVIDER (net).
 * Messages only (fi_send, fi_recv), manual progress: completions come from
 * fi_cq_read and from nowhere else. Memory is registered if the provider requires it.
 * Addresses are exchanged over a socket pair.
 *
 *   latency  ping-pong; half of the round trip. A receive is posted while the
 *            message before it is on its way, so that it costs nothing.
 *   bw       a window of sends one way, all into one buffer; a short answer ends it
 *
 * Warm-up, counts, batches and figures are those of `muster bench`. A wait for a
 * completion is bounded by TIMEOUT. The first process prints one JSON object
 * per line.
 */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 50, MAX_SIZES = 32, MAX_WINDOW = 1024, TIMEOUT = 20 /* s */, ANSWER = 4 /* bytes */ };

static struct {
	const char *bench, *provider, *address;
	long sizes[MAX_SIZES];
	int nsizes;
	long iterations; /* 0: by size */
	int window;
	int rank;
} opt = {.provider = "net", .address = "127.0.0.1", .window = 64};

/* Registered memory. */
struct memory {
	char *at;
	struct fid_mr *mr;
	void *desc;
};

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t peer;
	/* Contexts of operations: sends from the front, receives from the middle. */
	struct fi_context2 contexts[2 * MAX_WINDOW];
	long posted_sends, posted_recvs; /* which also choose the contexts */
	long sent, received;             /* completed */
} net;

static double now(void) /* seconds */
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void die(const char *what, long err)
{
	if (err < 0)
		fprintf(stderr, "ofi_bare: process %d, provider %s: %s: %s\n", opt.rank, opt.provider, what, fi_strerror((int)-err));
	else
		fprintf(stderr, "ofi_bare: process %d, provider %s: %s\n", opt.rank, opt.provider, what);
	exit(1);
}

static void must(const char *what, long rc)
{
	if (rc < 0)
		die(what, rc);
}

/* ---- two processes, each on a core of its own ---- */

/* Returns this process's end of the pair. */
static int pair_up(void)
{
	int ends[2];
	cpu_set_t allowed, one;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		die("no socket pair", 0);
	pid_t parent = getpid(), child = fork();
	if (child < 0)
		die("cannot fork", 0);
	opt.rank = child == 0;
	close(ends[1 - opt.rank]);
	if (opt.rank == 1) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			exit(1);
	}
	if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
		die("the allowed cores cannot be read", 0);
	for (int cpu = 0, nth = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || nth++ != opt.rank)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof one, &one) != 0)
			die("cannot be bound to a core", 0);
		return ends[opt.rank];
	}
	die("two cores are needed", 0);
	return -1;
}

/* ---- the endpoint ---- */

static void open_endpoint(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE, .size = 4 * MAX_WINDOW};
	struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 2};
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup(opt.provider);
	must("it offers no reliable datagrams there (fi_getinfo)", fi_getinfo(FI_VERSION(1, 15), opt.address, NULL, FI_SOURCE, hints, &net.info));
	fi_freeinfo(hints);
	/* libfabric may offer another provider on top of the requested one. */
	if (strcmp(net.info->fabric_attr->prov_name, opt.provider) != 0)
		die("libfabric offers another provider in its place; name it in full, as fi_info does", 0);
	must("fi_fabric", fi_fabric(net.info->fabric_attr, &net.fabric, NULL));
	must("fi_domain", fi_domain(net.fabric, net.info, &net.domain, NULL));
	must("fi_cq_open", fi_cq_open(net.domain, &cq, &net.cq, NULL));
	must("fi_av_open", fi_av_open(net.domain, &av, &net.av, NULL));
	must("fi_endpoint", fi_endpoint(net.domain, net.info, &net.ep, NULL));
	must("fi_ep_bind to the queue", fi_ep_bind(net.ep, &net.cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_ep_bind to the addresses", fi_ep_bind(net.ep, &net.av->fid, 0));
	must("fi_enable", fi_enable(net.ep));
}

static void know_peer(int pair)
{
	char mine[256] = {0}, other[256];
	size_t len = sizeof mine;
	must("fi_getname", fi_getname(&net.ep->fid, mine, &len));
	if (write(pair, mine, sizeof mine) != sizeof mine || recv(pair, other, sizeof other, MSG_WAITALL) != sizeof other)
		die("the other process has gone before it gave its address", 0);
	if (fi_av_insert(net.av, other, 1, &net.peer, 0, NULL) != 1)
		die("fi_av_insert", 0);
}

static struct memory memory(long size)
{
	struct memory m = {0};
	if (posix_memalign((void **)&m.at, (size_t)sysconf(_SC_PAGESIZE), (size_t)size) != 0)
		die("no memory for the buffers", 0);
	memset(m.at, 1, (size_t)size);
	if (net.info->domain_attr->mr_mode & FI_MR_LOCAL) {
		must("fi_mr_reg", fi_mr_reg(net.domain, m.at, (size_t)size, FI_SEND | FI_RECV, 0, 1, 0, &m.mr, NULL));
		if (net.info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
			must("fi_mr_bind", fi_mr_bind(m.mr, &net.ep->fid, 0));
			must("fi_mr_enable", fi_mr_enable(m.mr));
		}
		m.desc = fi_mr_desc(m.mr);
	}
	return m;
}

static void release(struct memory *m)
{
	if (m->mr)
		fi_close(&m->mr->fid);
	free(m->at);
}

/* ---- messages ---- */

/* Reads completions. */
static int progress(void)
{
	struct fi_cq_entry done[64];
	ssize_t n = fi_cq_read(net.cq, done, 64);
	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry e = {0};
		must("fi_cq_readerr", fi_cq_readerr(net.cq, &e, 0));
		die("an operation failed", -e.err);
	}
	must("fi_cq_read", n);
	for (ssize_t i = 0; i < n; i++) {
		if ((struct fi_context2 *)done[i].op_context < net.contexts + MAX_WINDOW)
			net.sent++;
		else
			net.received++;
	}
	return (int)n;
}

/* Waits until the given numbers of sends and receives have completed. */
static void await(long sent, long received)
{
	double since = 0;
	for (long looks = 1; net.sent < sent || net.received < received; looks++) {
		if (progress() > 0 || looks % (1 << 16) != 0)
			continue;
		if (since == 0)
			since = now();
		else if (now() - since > TIMEOUT)
			die("nothing has come for too long", 0);
	}
}

static void post_send(struct memory *m, long size)
{
	ssize_t rc;
	void *context = &net.contexts[net.posted_sends % MAX_WINDOW];
	for (double since = 0; (rc = fi_send(net.ep, m->at, (size_t)size, m->desc, net.peer, context)) == -FI_EAGAIN; progress()) {
		if (since == 0)
			since = now();
		else if (now() - since > TIMEOUT)
			die("no send was taken for too long", 0);
	}
	must("fi_send", rc);
	net.posted_sends++;
}

static void post_recv(struct memory *m, long size)
{
	ssize_t rc;
	void *context = &net.contexts[MAX_WINDOW + net.posted_recvs % MAX_WINDOW];
	for (double since = 0; (rc = fi_recv(net.ep, m->at, (size_t)size, m->desc, FI_ADDR_UNSPEC, context)) == -FI_EAGAIN; progress()) {
		if (since == 0)
			since = now();
		else if (now() - since > TIMEOUT)
			die("no receive was taken for too long", 0);
	}
	must("fi_recv", rc);
	net.posted_recvs++;
}

/* ---- figures, as `muster bench` makes them ---- */

static long iterations(long size, long small, long large)
{
	long n = opt.iterations;
	if (n == 0) {
		n = small;
		if (size > 8192)
			n = small * 8192 / size > large ? small * 8192 / size : large;
	}
	return n;
}

static long warmup(long n)
{
	return n / 10 > 10 ? n / 10 : 10;
}

static int batches(long n)
{
	return n < BATCHES ? (int)n : BATCHES;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* value is the mean over the whole loop; samples are those of the batches. */
static void print_line(long size, const char *metric, const char *unit, double value, double *samples, int n)
{
	if (opt.rank != 0)
		return;
	qsort(samples, (size_t)n, sizeof *samples, ascending);
	printf("{\"bench\":\"%s\",\"ranks\":2,\"device\":\"%s bare\",\"size\":%ld,\"metric\":\"%s\",\"unit\":\"%s\","
	       "\"value\":%.6g,\"min\":%.6g,\"p50\":%.6g,\"p99\":%.6g}\n",
	       opt.bench, opt.provider, size, metric, unit, value, samples[0], samples[n / 2], samples[n * 99 / 100]);
	fflush(stdout);
}

/* ---- the loops ---- */

/* The second process has a receive posted when it begins and when it ends. */
static void ping_pong(struct memory *s, struct memory *r, long size, long n)
{
	for (long i = 0; i < n; i++) {
		if (opt.rank == 1)
			await(net.posted_sends, net.posted_recvs);
		post_send(s, size);
		post_recv(r, size);
		if (opt.rank == 0)
			await(net.posted_sends, net.posted_recvs);
	}
}

static void latency(long size)
{
	double samples[BATCHES], total = 0;
	struct memory s = memory(size), r = memory(size);
	long n = iterations(size, 100000, 200);
	int count = batches(n);
	long each = (n + count - 1) / count;
	if (opt.rank == 1)
		post_recv(&r, size);
	ping_pong(&s, &r, size, warmup(n));
	for (int b = 0; b < count; b++) {
		double start = now();
		ping_pong(&s, &r, size, each);
		double took = now() - start;
		samples[b] = took * 1e6 / (2.0 * each);
		total += took;
	}
	print_line(size, "latency", "us", total * 1e6 / (2.0 * each * count), samples, count);
	if (opt.rank == 0) /* for the receive that is left over */
		post_send(&s, size);
	await(net.posted_sends, net.posted_recvs);
	release(&s);
	release(&r);
}

/* One window from the first process to the second, and the answer. */
static void window(struct memory *s, struct memory *r, struct memory *answer, long size)
{
	if (opt.rank == 0) {
		post_recv(answer, ANSWER);
		for (int k = 0; k < opt.window; k++)
			post_send(s, size);
	} else {
		for (int k = 0; k < opt.window; k++)
			post_recv(r, size);
		await(net.posted_sends, net.posted_recvs);
		post_send(answer, ANSWER);
	}
	await(net.posted_sends, net.posted_recvs);
}

static void bandwidth(long size)
{
	double samples[BATCHES], total = 0, megabytes = size * 1e-6 * opt.window;
	struct memory s = memory(size), r = memory(size), answer = memory(ANSWER);
	long n = iterations(size, 10000, 20);
	int count = batches(n);
	long each = (n + count - 1) / count;
	for (long i = 0; i < warmup(n); i++)
		window(&s, &r, &answer, size);
	for (int b = 0; b < count; b++) {
		double start = now();
		for (long i = 0; i < each; i++)
			window(&s, &r, &answer, size);
		double took = now() - start;
		samples[b] = megabytes * each / took;
		total += took;
	}
	print_line(size, "bandwidth", "MB/s", megabytes * each * count / total, samples, count);
	release(&s);
	release(&r);
	release(&answer);
}

/* ---- command line ---- */

static void parse(int argc, char **argv)
{
	int c;
	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: ofi_bare latency|bw [-f PROVIDER] [-a ADDRESS] [-s SIZES] [-i ITERATIONS] [-w WINDOW]\n");
		exit(2);
	}
	opt.bench = argv[1];
	while ((c = getopt(argc - 1, argv + 1, "f:a:s:i:w:")) != -1) {
		switch (c) {
		case 'f': opt.provider = optarg; break;
		case 'a': opt.address = optarg; break;
		case 's':
			for (char *p = strtok(optarg, ","); p && opt.nsizes < MAX_SIZES; p = strtok(NULL, ","))
				opt.sizes[opt.nsizes++] = atol(p);
			break;
		case 'i': opt.iterations = atol(optarg); break;
		case 'w': opt.window = atoi(optarg); break;
		default: exit(2);
		}
	}
	if (opt.nsizes == 0)
		opt.sizes[opt.nsizes++] = 8;
	for (int i = 0; i < opt.nsizes; i++)
		if (opt.sizes[i] < 1)
			opt.window = 0;
	if (opt.window < 1 || opt.window > MAX_WINDOW || opt.iterations < 0) {
		fprintf(stderr, "ofi_bare: sizes are at least 1, the window is 1 to %d, iterations are not negative\n", MAX_WINDOW);
		exit(2);
	}
	if (strcmp(opt.bench, "latency") != 0 && strcmp(opt.bench, "bw") != 0) {
		fprintf(stderr, "ofi_bare: there is no benchmark %s; there are latency and bw\n", opt.bench);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	char word = 0;
	int status = 0;
	parse(argc, argv);
	int pair = pair_up();
	open_endpoint();
	know_peer(pair);
	for (int i = 0; i < opt.nsizes; i++) {
		if (strcmp(opt.bench, "latency") == 0)
			latency(opt.sizes[i]);
		else
			bandwidth(opt.sizes[i]);
	}
	/* Neither exits before the other has finished. */
	if (write(pair, &word, 1) != 1 || read(pair, &word, 1) != 1)
		die("the other process has gone before the end", 0);
	fi_close(&net.ep->fid);
	fi_close(&net.av->fid);
	fi_close(&net.cq->fid);
	fi_close(&net.domain->fid);
	fi_close(&net.fabric->fid);
	fi_freeinfo(net.info);
	if (opt.rank == 0 && wait(&status) > 0 && status != 0)
		die("the other process failed", 0);
	return 0;
}
