//go:build ofi && cgo && linux

// Work that the provider does not accept. Connectionless endpoints over connected ones refuse
// work for a peer until the connection is established, and keep refusing, with the same error,
// while no process listens at the other end. So such work is queued, in order for each peer, and
// posted again at each Poll. If that lasts, the peer's socket is probed: a peer whose host
// refuses the connection is gone.

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inside.h"

enum {
	PROBE_AFTER = 200,     // ms of refusals before the peer's socket is probed
	PROBE_LIMIT = 10000,   // ms until a socket that does not answer counts as gone
	GIVE_UP = 120000,      // ms of refusals where there is no socket to probe
};

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 + 1;
}

void mo_defer(mo_qp *q, struct mo_peer *p, struct mo_op *op)
{
	op->next = NULL;
	*q->deferred_tail = op;
	q->deferred_tail = &op->next;
	if (p->deferred++ == 0)
		p->since = 0;
	q->send->odd = 1;
}

// sockets reports whether peers listen on TCP sockets.
static int sockets(mo_device *d)
{
	const char *name = d->info->fabric_attr->prov_name;
	uint32_t f = d->info->addr_format;
	return (f == FI_SOCKADDR || f == FI_SOCKADDR_IN || f == FI_SOCKADDR_IN6) && (!strncmp(name, "net", 3) || !strncmp(name, "tcp", 3));
}

// probe tries to connect, a step at each call. It returns 0 as long as the result is unknown, an
// error if the peer is gone, and -1 if it listens.
static int probe(struct mo_peer *p, uint64_t age)
{
	socklen_t len = p->name.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	int err = 0;
	if (!p->probe) {
		int fd = socket(p->name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return 0;
		p->probe = fd + 1;
		if (connect(fd, (struct sockaddr *)&p->name, len) == 0)
			err = -1;
		else if (errno != EINPROGRESS)
			err = errno;
	} else {
		struct pollfd f = {.fd = p->probe - 1, .events = POLLOUT};
		if (poll(&f, 1, 0) > 0) {
			len = sizeof err;
			if (getsockopt(f.fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
				err = errno;
			if (!err)
				err = -1;
		} else if (age > PROBE_LIMIT) {
			err = FI_ETIMEDOUT;
		}
	}
	if (err) {
		close(p->probe - 1);
		p->probe = 0;
	}
	return err;
}

// hopeless returns why a peer that accepts nothing never will, or 0.
static int hopeless(mo_qp *q, struct mo_peer *p)
{
	uint64_t t = now();
	if (q->transport == MO_RC)
		return 0; // a broken connection is reported
	if (!p->since) {
		p->since = t;
		return 0;
	}
	uint64_t age = t - p->since;
	if (!sockets(q->dev))
		return age > GIVE_UP ? FI_ETIMEDOUT : 0;
	if (age < PROBE_AFTER)
		return 0;
	int err = probe(p, age);
	if (err == -1)
		p->since = t; // it listens, and is busy
	return err > 0 ? err : 0;
}

// mo_retry posts deferred work again.
void mo_retry(mo_qp *q)
{
	struct mo_op **at = &q->deferred, *op;
	q->walk++;
	while ((op = *at)) {
		struct mo_peer *p = mo_peer_of(q, op->peer);
		int rc = -FI_EAGAIN, gone = p->gone;
		if (p->walk != q->walk && !gone) {
			rc = mo_issue(q, p, op);
			if (rc == -FI_EAGAIN) {
				p->walk = q->walk;
				p->gone = gone = hopeless(q, p);
			}
		}
		if (rc == -FI_EAGAIN && !gone) {
			at = &op->next;
			continue;
		}
		*at = op->next;
		if (--p->deferred == 0)
			p->gone = 0; // the next one tries again
		p->since = 0;
		if (gone)
			mo_end(op, MO_STATUS_GONE, gone);
		else if (rc)
			mo_end(op, mo_status_of(-rc), -rc);
	}
	q->deferred_tail = at;
}
