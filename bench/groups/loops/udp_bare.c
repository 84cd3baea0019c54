/*
 * Bandwidth of UDP with segmentation offload, driven bare: the reference for software
 * RDMA between two hosts of a lab.
 *
 *   udp_bare SENDER RECEIVER ADDRESS bw -s SIZE,SIZE,... -i WINDOWS
 *
 * SENDER and RECEIVER are network namespaces, ADDRESS is that of the receiver. A window
 * is 64 messages, as in the loop bw of peers.c. The kernel cuts up to 44 packets out of one
 * call (UDP_SEGMENT) and joins them again (UDP_GRO). There is no header, no checksum
 * besides UDP's and no retransmission: the receiver reports the bytes that it has, every
 * ACK_EVERY bytes and at the end of a window, and the sender keeps at most IN_FLIGHT
 * unreported. That is less than any queue on the way, so nothing is lost; if it is, the
 * program fails.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	PACKET = 1472, /* an MTU of 1500 without the headers of IP and UDP */
	MOST = 44 * PACKET,
	WINDOW = 64,
	BATCHES = 50,
	MAX_SIZES = 16,
	PORT = 7777,
	ACK_EVERY = 128 << 10,
	IN_FLIGHT = 640 << 10,
	SOCKET_BUFFER = 8 << 20,
};

static long sizes[MAX_SIZES], windows;
static int nsizes;

static void die(const char *why)
{
	fprintf(stderr, "udp_bare: %s: %s\n", why, strerror(errno));
	exit(1);
}

static double now(void) /* seconds */
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void enter(const char *namespace)
{
	char path[256];
	snprintf(path, sizeof path, "/run/netns/%s", namespace);
	int fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
		die("cannot enter the network namespace");
	close(fd);
}

static int open_socket(int option)
{
	int value = SOCKET_BUFFER, segment = option == UDP_SEGMENT ? PACKET : 1;
	struct timeval limit = {.tv_sec = 2};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0)
		die("no socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &value, sizeof value);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &value, sizeof value);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (setsockopt(fd, SOL_UDP, option, &segment, sizeof segment) != 0)
		die("the kernel has no segmentation offload for UDP");
	return fd;
}

/* Polls, as MPI libraries do; gives up after two seconds. */
static ssize_t receive(int fd, void *b, size_t n, struct sockaddr_in *from)
{
	socklen_t length = sizeof *from;
	double limit = 0;
	for (long i = 1;; i++) {
		ssize_t got = recvfrom(fd, b, n, MSG_DONTWAIT, (struct sockaddr *)from, from ? &length : NULL);
		if (got >= 0 || errno != EAGAIN)
			return got;
		if (i % 1000 == 0) {
			limit = limit == 0 ? now() + 2 : limit;
			if (now() > limit)
				return -1;
			sched_yield();
		}
	}
}

/* Receives the windows of all sizes and reports its bytes. */
static void receiver(int fd)
{
	struct sockaddr_in from;
	for (int s = 0; s < nsizes; s++) {
		long size = sizes[s], in_window = size * WINDOW;
		char *b = malloc((size_t)size + MOST + PACKET);
		uint64_t total = 0, reported = 0, all = (uint64_t)in_window * (uint64_t)(windows + 2);
		memset(b, 1, (size_t)size + MOST);
		while (total < all) {
			ssize_t got = receive(fd, b + total % (uint64_t)size, MOST, &from);
			if (got < 0)
				die("a packet is lost");
			total += (uint64_t)got;
			if (total - reported >= ACK_EVERY || total % (uint64_t)in_window == 0) {
				reported = total;
				if (sendto(fd, &total, sizeof total, 0, (struct sockaddr *)&from, sizeof from) < 0)
					die("cannot report");
			}
		}
		free(b);
	}
}

/* Waits until the receiver has at least that much. */
static uint64_t await(int fd, uint64_t reported, uint64_t least)
{
	while (reported < least)
		if (receive(fd, &reported, sizeof reported, NULL) < 0)
			die("no report arrives");
	return reported;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void sender(int fd)
{
	for (int s = 0; s < nsizes; s++) {
		long size = sizes[s];
		char *b = malloc((size_t)size);
		double samples[BATCHES], start = 0, last = 0, mb = size * 1e-6 * WINDOW;
		uint64_t sent = 0, reported = 0;
		int count = windows < BATCHES ? (int)windows : BATCHES, batch = 0;
		memset(b, 1, (size_t)size);
		for (long w = -2; w < windows; w++) {
			if (w == 0)
				start = last = now();
			for (int m = 0; m < WINDOW; m++) {
				for (long at = 0; at < size; at += MOST) {
					size_t n = (size_t)(size - at < MOST ? size - at : MOST);
					if (sent + n > IN_FLIGHT)
						reported = await(fd, reported, sent + n - IN_FLIGHT);
					if (send(fd, b + at, n, 0) != (ssize_t)n)
						die("cannot send");
					sent += n;
				}
			}
			reported = await(fd, reported, sent);
			if (w >= 0 && (w + 1) * count / windows > batch) {
				double t = now();
				samples[batch++] = mb * windows / count / (t - last);
				last = t;
			}
		}
		qsort(samples, (size_t)count, sizeof *samples, ascending);
		printf("{\"bench\":\"bw\",\"ranks\":2,\"device\":\"udp bare\",\"size\":%ld,\"metric\":\"bandwidth\",\"unit\":\"MB/s\","
		       "\"value\":%.6g,\"min\":%.6g,\"p50\":%.6g,\"p99\":%.6g}\n",
		       size, mb * windows / (last - start), samples[0], samples[count / 2], samples[(count - 1) * 99 / 100]);
		fflush(stdout);
		free(b);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int c, status, *ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (argc < 5 || inet_pton(AF_INET, argv[3], &at.sin_addr) != 1) {
		fprintf(stderr, "usage: udp_bare SENDER RECEIVER ADDRESS bw -s SIZES -i WINDOWS\n");
		return 2;
	}
	windows = 10;
	while ((c = getopt(argc - 4, argv + 4, "s:i:")) != -1) {
		if (c == 's')
			for (char *p = strtok(optarg, ","); p && nsizes < MAX_SIZES; p = strtok(NULL, ","))
				sizes[nsizes++] = atol(p);
		else if (c == 'i')
			windows = atol(optarg);
		else
			return 2;
	}
	for (int i = 0; i < nsizes; i++)
		if (sizes[i] < 1 || windows < 1)
			return 2;
	pid_t child = fork();
	if (child == 0) {
		enter(argv[2]);
		int fd = open_socket(UDP_GRO);
		if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0)
			die("cannot bind");
		__atomic_store_n(ready, 1, __ATOMIC_RELEASE);
		receiver(fd);
		return 0;
	}
	enter(argv[1]);
	int fd = open_socket(UDP_SEGMENT);
	if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
		die("cannot connect");
	for (int i = 0; i < 2000 && !__atomic_load_n(ready, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	sender(fd);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
