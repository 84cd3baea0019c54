//go:build ofi && cgo && linux

// Creating and closing queues. A queue pair is an endpoint with its own receive buffers;
// messages go through them even if the user posts buffers, so that a message that is too
// long, or of another job, uses no posted buffer and breaks no connection.

#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

// with_wait_set creates a queue whose descriptor belongs to a wait set of ours. net (libfabric
// 1.17) writes to its descriptor's pipe at each completion and clears it neither in fi_cq_read
// nor in fi_trywait: a sleep on it after the first message returns at once. Waiting in the set
// with a timeout of 0 clears it, which requires a separate set. Where there are no wait sets,
// since libfabric 2, fi_trywait clears it.
static int with_wait_set(mo_cq *c, struct fi_cq_attr attr, int *fd)
{
	struct fi_wait_attr set = {.wait_obj = FI_WAIT_FD};
	if (strcmp(c->dev->info->fabric_attr->prov_name, "net") != 0 || fi_wait_open(c->dev->fabric, &set, &c->set) != 0)
		return -FI_ENOSYS;
	attr.wait_obj = FI_WAIT_SET;
	attr.wait_set = c->set;
	int rc = fi_cq_open(c->dev->domain, &attr, &c->fid, NULL);
	if (!rc && (rc = fi_control(&c->set->fid, FI_GETWAIT, fd)) != 0)
		fi_close(&c->fid->fid);
	if (rc) {
		fi_close(&c->set->fid);
		c->set = NULL;
	}
	return rc;
}

// mo_cq_open creates a completion queue. fd is the descriptor to wait on, or -1 if the provider
// has none.
int mo_cq_open(mo_device *d, int depth, mo_cq **out, int *fd)
{
	mo_cq *c = calloc(1, sizeof *c);
	if (!c)
		return MO_NO_MEMORY;
	c->dev = d;
	c->ended_tail = &c->ended;
	struct fi_cq_attr attr = {.size = (size_t)depth, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
	mo_lock(d);
	int rc = with_wait_set(c, attr, fd);
	if (rc) {
		rc = fi_cq_open(d->domain, &attr, &c->fid, NULL);
		if (!rc && fi_control(&c->fid->fid, FI_GETWAIT, fd) != 0) {
			fi_close(&c->fid->fid);
			rc = -FI_ENOSYS;
		}
	}
	if (rc) {
		*fd = -1;
		attr.wait_obj = FI_WAIT_NONE;
		rc = fi_cq_open(d->domain, &attr, &c->fid, NULL);
	}
	mo_unlock(d);
	if (rc) {
		free(c);
		return rc;
	}
	c->fd = *fd;
	*out = c;
	return MO_OK;
}

mo_done *mo_cq_done(mo_cq *c) { return c->done; }

int mo_cq_close(mo_cq *c)
{
	mo_lock(c->dev);
	int rc = fi_close(&c->fid->fid);
	if (!rc && c->set)
		fi_close(&c->set->fid);
	mo_unlock(c->dev);
	if (rc)
		return rc;
	mo_blocks_free(c->garbage);
	for (struct mo_ended *e = c->ended, *next; e; e = next) {
		next = e->next;
		free(e);
	}
	free(c);
	return MO_OK;
}

// calm clears the descriptor if it is readable although nothing has arrived. After a result of
// 1 the caller has to Poll before the next sleep, so nothing that arrived meanwhile is missed.
static int calm(mo_cq *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	if (poll(&p, 1, 0) <= 0)
		return 0;
	if (c->set)
		fi_wait(c->set, 0);
	else
		fi_cq_sread(c->fid, NULL, 0, NULL, 0);
	return 1;
}

// mo_cq_ready reports whether Poll may have something to do: MO_READY. If not, the file
// descriptor will indicate it; without one, only operations that have already ended are known.
// MO_SOON requests another check soon whatever the file descriptor indicates.
int mo_cq_ready(mo_cq *c)
{
	int soon = 0;
	mo_lock(c->dev);
	int ready = c->lent.first || c->came.first || c->ended || c->garbage;
	for (mo_qp *q = c->dev->qps; q && !ready; q = q->next) {
		ready = q->recv == c && ((q->waiting.first && q->srq->count) || q->srq->low);
		soon |= (q->send == c && q->deferred) || (q->recv == c && q->unposted.first);
	}
	if (!ready && c->fd >= 0) {
		struct fid *fids[] = {&c->fid->fid};
		ready = fi_trywait(c->dev->fabric, fids, 1) != 0 || calm(c);
	}
	mo_unlock(c->dev);
	return ready ? MO_READY : soon ? MO_SOON : MO_IDLE;
}

mo_srq *mo_srq_new(mo_device *d, int lend, int depth, int low_water, uint32_t tag)
{
	mo_srq *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->dev = d;
	s->lend = lend;
	s->tag = tag;
	s->depth = (uint32_t)depth;
	s->low_water = (uint32_t)low_water;
	if (lend)
		return s;
	s->ring = calloc(s->depth, sizeof *s->ring);
	s->free_slots = calloc(s->depth, sizeof *s->free_slots);
	if (!s->ring || !s->free_slots) {
		mo_srq_free(s);
		return NULL;
	}
	for (uint32_t i = 0; i < s->depth; i++)
		s->free_slots[s->free_count++] = s->depth - 1 - i;
	return s;
}

void mo_srq_free(mo_srq *s)
{
	free(s->ring);
	free(s->free_slots);
	free(s);
}

int mo_srq_post(mo_srq *s, uint64_t id, uintptr_t mem, size_t len, uint32_t *slot)
{
	if (s->lend)
		return MO_UNSUPPORTED;
	mo_lock(s->dev);
	int rc = MO_AGAIN;
	if (s->count < s->depth && s->free_count > 0) {
		*slot = s->free_slots[--s->free_count];
		s->ring[(s->head + s->count++) % s->depth] = (struct mo_posted){id, (uint8_t *)mem, len, *slot};
		rc = MO_OK;
		for (mo_qp *q = s->dev->qps; q; q = q->next)
			if (q->srq == s && q->waiting.first)
				q->recv->odd = 1;
	}
	mo_unlock(s->dev);
	return rc;
}

// bring allocates the receive buffers of a queue pair and posts them.
static int bring(mo_qp *q, int buffers)
{
	mo_device *d = q->dev;
	size_t each = d->setup.buffer;
	struct mo_block *b, *r;
	int rc = mo_block_new(d, &q->blocks, each * (size_t)buffers, &b);
	if (!rc) {
		// Their descriptors are freed together with them.
		uint64_t mode = d->mr_mode;
		d->mr_mode &= ~(uint64_t)FI_MR_LOCAL;
		rc = mo_block_new(d, &q->blocks, sizeof(struct mo_rx) * (size_t)buffers, &r);
		d->mr_mode = mode;
	}
	if (rc)
		return rc;
	q->rx = r->mem;
	q->rx_count = (uint32_t)buffers;
	for (int i = 0; i < buffers; i++) {
		struct mo_rx *x = &q->rx[i];
		x->kind = MO_KIND_RECV;
		x->qp = q;
		x->mem = (uint8_t *)b->mem + each * (size_t)i;
		x->desc = mo_block_desc(b);
		mo_rx_post(x);
	}
	return MO_OK;
}

// mo_enable binds a new endpoint to its queues and posts its buffers.
int mo_enable(mo_qp *q)
{
	mo_device *d = q->dev;
	int rc;
	if (q->send == q->recv) {
		rc = fi_ep_bind(q->ep, &q->send->fid->fid, FI_TRANSMIT | FI_RECV);
	} else {
		rc = fi_ep_bind(q->ep, &q->send->fid->fid, FI_TRANSMIT);
		if (!rc)
			rc = fi_ep_bind(q->ep, &q->recv->fid->fid, FI_RECV);
	}
	if (!rc && d->av)
		rc = fi_ep_bind(q->ep, &d->av->fid, 0);
	if (!rc)
		rc = fi_enable(q->ep);
	if (!rc) {
		if (q->transport != MO_RC)
			d->bound = q;
		rc = bring(q, q->buffers);
	}
	return rc;
}

// shut closes the libfabric objects of a queue pair.
static int shut(mo_qp *q)
{
	int rc = q->ep ? fi_close(&q->ep->fid) : 0;
	if (q->pep)
		fi_close(&q->pep->fid);
	if (q->eq)
		fi_close(&q->eq->fid);
	return rc;
}

int mo_qp_open(mo_device *d, int transport, mo_cq *send, mo_cq *recv, mo_srq *srq, int depth, int buffers, mo_qp **out)
{
	mo_qp *q = calloc(1, sizeof *q);
	if (!q)
		return MO_NO_MEMORY;
	q->dev = d;
	q->transport = transport;
	q->send = send;
	q->recv = recv;
	q->srq = srq;
	q->depth = (uint32_t)depth;
	q->buffers = buffers;
	q->deferred_tail = &q->deferred;
	mo_lock(d);
	int rc;
	if (transport == MO_RC) {
		rc = mo_listen(q);
	} else {
		rc = fi_endpoint(d->domain, d->info, &q->ep, NULL);
		if (!rc)
			rc = mo_enable(q);
	}
	if (rc) {
		shut(q);
		d->bound = NULL;
		mo_blocks_free(q->blocks);
		free(q);
	} else {
		q->next = d->qps;
		d->qps = q;
		*out = q;
	}
	mo_unlock(d);
	return rc;
}

int mo_qp_name(mo_qp *q, void *name, size_t *len)
{
	mo_lock(q->dev);
	int rc = fi_getname(q->pep ? &q->pep->fid : &q->ep->fid, name, len);
	mo_unlock(q->dev);
	return rc;
}

uint32_t *mo_qp_slots(mo_qp *q) { return q->slots; }

// forget removes the buffers of a queue pair from a queue.
static void forget(struct mo_chain *c, mo_qp *q)
{
	struct mo_chain keep = {0};
	struct mo_rx *r;
	while ((r = mo_chain_take(c)))
		if (r->qp != q)
			mo_chain_add(&keep, r);
	*c = keep;
}

// unregister ends the registrations of this package's buffers where they belong to the
// endpoint, which cannot be closed before.
static void unregister(struct mo_block *b)
{
	for (; b; b = b->next) {
		if (b->mr)
			fi_close(&b->mr->fid);
		b->mr = NULL;
	}
}

// mo_qp_close ends the outstanding work. It completes as flushed unless it has ended already.
int mo_qp_close(mo_qp *q)
{
	mo_device *d = q->dev;
	mo_lock(d);
	mo_drain(q->send, q);
	mo_drain(q->recv, q);
	if (d->bound == q && d->mr_mode & FI_MR_ENDPOINT) {
		unregister(q->blocks);
		unregister(d->blocks);
	}
	int rc = shut(q);
	mo_drain(q->send, q);
	mo_drain(q->recv, q);
	q->deferred = NULL;
	for (uint32_t i = 0; i < d->op_count; i++) {
		struct mo_op *op = d->ops[i];
		if (op->kind != MO_KIND_FREE && op->qp == q)
			mo_end(op, MO_STATUS_FLUSHED, FI_ECANCELED);
	}
	forget(&q->recv->lent, q);
	forget(&q->recv->came, q);
	struct mo_block **last = &q->recv->garbage;
	while (*last)
		last = &(*last)->next;
	*last = q->blocks;
	q->recv->odd = 1;
	for (mo_qp **at = &d->qps; *at; at = &(*at)->next) {
		if (*at == q) {
			*at = q->next;
			break;
		}
	}
	if (d->bound == q)
		d->bound = NULL;
	free(q);
	mo_unlock(d);
	return rc;
}

// mo_pending returns the number of incomplete requests.
int mo_pending(mo_qp *q)
{
	mo_lock(q->dev);
	int n = (int)q->open;
	mo_unlock(q->dev);
	return n;
}
