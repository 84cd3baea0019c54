//go:build ofi && cgo && linux

// The path of a message. Sending: mo_post makes an operation of each work request and mo_issue
// passes it to the provider; if the provider does not accept it now, it is deferred. Receiving:
// mo_poll releases what the last Poll lent, then reads completions: deliver handles messages
// and finish ends operations.

#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

// ---- sending ----

// more allocates 64 operations.
static int more(mo_device *d)
{
	enum { COUNT = 64 };
	struct mo_block *b;
	if (d->op_count + COUNT > d->op_room) {
		uint32_t room = d->op_room ? d->op_room * 2 : 256;
		struct mo_op **ops = realloc(d->ops, room * sizeof *ops);
		if (!ops)
			return MO_NO_MEMORY;
		d->ops = ops;
		d->op_room = room;
	}
	int rc = mo_block_new(d, &d->blocks, sizeof(struct mo_op) * COUNT, &b);
	if (rc)
		return rc;
	struct mo_op *op = b->mem;
	for (int i = COUNT - 1; i >= 0; i--) {
		op[i].slot = d->op_count + (uint32_t)i;
		op[i].desc = mo_block_desc(b);
		op[i].next = d->free_ops;
		d->free_ops = &op[i];
		d->ops[op[i].slot] = &op[i];
	}
	d->op_count += COUNT;
	return MO_OK;
}

// big returns a large buffer, or NULL if all are in use.
static struct mo_big *big(mo_device *d)
{
	enum { COUNT = 8 };
	struct mo_block *b;
	if (!d->free_bigs && d->big_count < d->setup.sends) {
		struct mo_big *list = calloc(COUNT, sizeof *list);
		if (!list || mo_block_new(d, &d->blocks, (size_t)d->setup.buffer * COUNT, &b)) {
			free(list);
			return NULL;
		}
		list[0].all = d->bigs;
		d->bigs = list;
		d->big_count += COUNT;
		for (int i = 0; i < COUNT; i++) {
			list[i].mem = (uint8_t *)b->mem + (size_t)i * d->setup.buffer;
			list[i].desc = mo_block_desc(b);
			list[i].next = d->free_bigs;
			d->free_bigs = &list[i];
		}
	}
	struct mo_big *one = d->free_bigs;
	if (one)
		d->free_bigs = one->next;
	return one;
}

static void release(struct mo_op *op)
{
	mo_device *d = op->qp->dev;
	if (op->big) {
		op->big->next = d->free_bigs;
		d->free_bigs = op->big;
		op->big = NULL;
	}
	op->kind = MO_KIND_FREE;
	op->qp = NULL;
	op->next = d->free_ops;
	d->free_ops = op;
}

// pack writes header, Head and, if with is set, Body to the operation's message.
static void pack(mo_device *d, struct mo_op *op, const mo_wr *w, int with)
{
	uint8_t *to = op->big ? op->big->mem : op->small;
	memcpy(to, &d->header, MO_HEADER);
	memcpy(to + MO_HEADER, w->head, w->head_len);
	op->message = MO_HEADER + w->head_len;
	if (with && w->len > 0) {
		memcpy(to + op->message, w->body, (size_t)w->len);
		op->message += (size_t)w->len;
	}
}

// is_inline reports whether only a failure of the operation makes a completion.
static int is_inline(const struct mo_op *op)
{
	return op->kind == MO_KIND_INLINE || op->kind == MO_KIND_INLINE_WRITE;
}

// prepare makes an operation of a request.
static int prepare(mo_qp *q, const mo_wr *w, struct mo_op **out)
{
	mo_device *d = q->dev;
	size_t body = (size_t)w->len, message = MO_HEADER + w->head_len + body;
	int packed = 0;
	void *desc = NULL;
	switch (w->op) {
	case MO_SEND:
		if (w->head_len > sizeof w->head || message > d->setup.buffer)
			return MO_TOO_LONG;
		packed = w->flags & MO_INLINE || message <= MO_SMALL || d->iov < 2;
		break;
	case MO_WRITE:
		if (!d->setup.delivery || q->transport == MO_UD)
			return MO_UNSUPPORTED;
		message = body;
		packed = w->flags & MO_INLINE;
		if (packed && body > d->setup.buffer)
			return MO_TOO_LONG;
		break;
	case MO_READ:
		if (q->transport == MO_UD)
			return MO_UNSUPPORTED;
		break;
	default:
		return MO_UNSUPPORTED;
	}
	if (!packed && d->mr_mode & FI_MR_LOCAL) {
		desc = w->lkey < d->lkey_count ? d->lkeys[w->lkey] : NULL;
		if (!desc && body > 0)
			return MO_BAD_LKEY;
	}
	if (q->open >= q->depth)
		return MO_AGAIN;
	int rc;
	if (!d->free_ops && (rc = more(d)))
		return rc;
	struct mo_op *op = d->free_ops;
	if (packed && message > MO_SMALL && !(op->big = big(d)))
		return MO_AGAIN;
	d->free_ops = op->next;
	op->qp = q;
	op->id = w->id;
	op->peer = q->transport == MO_RC ? q->other_index : w->peer;
	op->body = packed ? NULL : w->body;
	op->body_len = packed ? 0 : body;
	op->left = 0;
	if (w->op != MO_SEND && !packed && body > d->max_msg) { // adapters accept a few megabytes at a time
		op->left = body - (size_t)d->max_msg;
		op->body_len = (size_t)d->max_msg;
	}
	op->body_desc = desc;
	op->len = body;
	op->kind = MO_KIND_SEND;
	if (w->op == MO_SEND) {
		op->len += w->head_len;
		if (w->flags & MO_INLINE)
			op->kind = MO_KIND_INLINE;
		pack(d, op, w, packed);
	} else {
		op->kind = w->op == MO_READ ? MO_KIND_READ : MO_KIND_WRITE;
		if (packed) { // the caller may change its own body after the post
			op->kind = MO_KIND_INLINE_WRITE;
			op->body = op->big ? op->big->mem : op->small;
			op->body_desc = op->big ? op->big->desc : op->desc;
			op->body_len = body;
			memcpy(op->body, w->body, body);
		}
		op->remote = w->remote;
		op->rkey = w->rkey;
	}
	*out = op;
	return MO_OK;
}

// mo_issue passes an operation to the provider.
int mo_issue(mo_qp *q, struct mo_peer *p, struct mo_op *op)
{
	switch (op->kind) {
	case MO_KIND_READ:
		return (int)fi_read(q->ep, op->body, op->body_len, op->body_desc, p->addr, op->remote, op->rkey, op);
	case MO_KIND_WRITE:
	case MO_KIND_INLINE_WRITE: {
		struct iovec local = {op->body, op->body_len};
		struct fi_rma_iov remote = {op->remote, op->body_len, op->rkey};
		struct fi_msg_rma m = {.msg_iov = &local, .desc = &op->body_desc, .iov_count = 1, .addr = p->addr,
			.rma_iov = &remote, .rma_iov_count = 1, .context = op};
		return (int)fi_writemsg(q->ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	}
	default:
		break;
	}
	void *head = op->big ? op->big->mem : op->small, *desc = op->big ? op->big->desc : op->desc;
	if (op->body_len == 0)
		return (int)fi_send(q->ep, head, op->message, desc, p->addr, op);
	struct iovec parts[] = {{head, op->message}, {op->body, op->body_len}};
	void *descs[] = {desc, op->body_desc};
	return (int)fi_sendv(q->ep, parts, descs, 2, p->addr, op);
}

// mo_post accepts a prefix of n requests. It returns their number, and in the upper half why it
// did not accept the next one. The slots of those that complete are left in q->slots.
int64_t mo_post(mo_qp *q, uintptr_t wrs, int n)
{
	const mo_wr *w = (const mo_wr *)wrs;
	mo_device *d = q->dev;
	int rc = MO_OK, i;
	mo_lock(d);
	for (i = 0; i < n; i++, w++) {
		struct mo_op *op;
		struct mo_peer *p = mo_peer_of(q, w->peer);
		if (!p) {
			rc = MO_UNKNOWN_PEER;
			break;
		}
		rc = prepare(q, w, &op);
		if (rc == MO_AGAIN) {
			mo_drain(q->send, NULL); // ended operations make room
			rc = prepare(q, w, &op);
		}
		if (rc)
			break;
		q->open++;
		q->slots[i] = is_inline(op) ? MO_NO_SLOT : op->slot;
		if (w->op != MO_SEND && w->len == 0) {
			mo_end(op, MO_STATUS_OK, 0); // some providers never complete an empty read
			continue;
		}
		int sent = p->deferred ? -FI_EAGAIN : mo_issue(q, p, op);
		if (sent == -FI_EAGAIN) {
			mo_defer(q, p, op);
		} else if (sent) {
			q->open--;
			release(op);
			rc = sent;
			break;
		}
	}
	mo_unlock(d);
	return (int64_t)i | (int64_t)rc << 32;
}

// ---- receiving ----

#define MO_WAITS 1 // no error of libfabric's is positive

// mo_status_of converts an error of libfabric to an rdma.Status.
int mo_status_of(int err)
{
	switch (err) {
	case 0:
		return MO_STATUS_OK;
	case FI_EACCES:
	case FI_EPERM:
	case FI_EKEYREJECTED:
	case FI_ENOKEY:
		return MO_STATUS_ACCESS;
	case FI_ETRUNC:
	case FI_EMSGSIZE:
		return MO_STATUS_TOO_LONG;
	case FI_ECANCELED:
		return MO_STATUS_FLUSHED;
	case FI_ECONNREFUSED:
	case FI_ECONNRESET:
	case FI_ECONNABORTED:
	case FI_ENOTCONN:
	case FI_ESHUTDOWN:
	case FI_EHOSTUNREACH:
	case FI_EHOSTDOWN:
	case FI_ENETUNREACH:
	case FI_ENETDOWN:
	case FI_ETIMEDOUT:
	case EPIPE:
	case FI_EIO:
		return MO_STATUS_GONE;
	}
	return MO_STATUS_FAULT;
}

void mo_rx_post(struct mo_rx *r)
{
	mo_qp *q = r->qp;
	if (fi_recv(q->ep, r->mem, q->dev->setup.buffer, r->desc, FI_ADDR_UNSPEC, r)) {
		mo_chain_add(&q->unposted, r);
		q->recv->odd = 1;
	}
}

// take passes a message to the user, if it is valid and there is room for it.
static int take(mo_cq *c, struct mo_rx *r, uint64_t len, mo_done *o)
{
	mo_qp *q = r->qp;
	mo_srq *s = q->srq;
	const struct mo_header *h = (const struct mo_header *)r->mem;
	o->op = MO_RECV;
	o->status = MO_STATUS_OK;
	o->error = 0;
	o->peer = h->from;
	o->len = len - MO_HEADER;
	o->data = r->mem + MO_HEADER;
	if (s->lend) {
		o->id = 0;
		o->lent = 1;
		mo_chain_add(&c->lent, r);
		return 1;
	}
	struct mo_posted *p = &s->ring[s->head];
	s->head = (s->head + 1) % s->depth;
	if (s->count-- == s->low_water) {
		s->low = 1;
		c->odd = 1;
	}
	s->free_slots[s->free_count++] = p->slot;
	o->id = p->id;
	o->slot = p->slot;
	o->tag = s->tag;
	o->lent = 0;
	if (o->len > p->len) {
		o->len = p->len;
		o->status = MO_STATUS_TOO_LONG;
		o->error = FI_ETRUNC;
	}
	memcpy(p->mem, o->data, o->len);
	mo_rx_post(r);
	return 1;
}

// deliver handles an arrival. It returns 1 if it made a completion.
static int deliver(mo_cq *c, struct mo_rx *r, uint64_t len, mo_done *o)
{
	mo_qp *q = r->qp;
	const struct mo_header *h = (const struct mo_header *)r->mem;
	if (len < MO_HEADER || h->job != q->dev->header.job || h->size != MO_HEADER || h->check != MO_CHECK) {
		atomic_fetch_add(&q->dev->dropped, 1);
		mo_rx_post(r);
		return 0;
	}
	if (!q->srq->lend && (q->waiting.first || !q->srq->count)) {
		r->len = len;
		mo_chain_add(&q->waiting, r);
		return 0;
	}
	return take(c, r, len, o);
}

static void report(struct mo_op *op, int status, int error, mo_done *o)
{
	o->id = op->id;
	o->data = NULL;
	o->len = status == MO_STATUS_OK ? op->len : 0;
	o->peer = op->peer;
	o->slot = is_inline(op) ? MO_NO_SLOT : op->slot;
	o->op = op->kind == MO_KIND_READ ? MO_READ : op->kind == MO_KIND_WRITE || op->kind == MO_KIND_INLINE_WRITE ? MO_WRITE : MO_SEND;
	o->status = (uint8_t)status;
	o->lent = 0;
	o->error = error;
}

// finish ends an operation. It returns 1 if it made a completion.
static int finish(struct mo_op *op, int status, int error, mo_done *o)
{
	int tell = !is_inline(op) || status != MO_STATUS_OK;
	if (tell)
		report(op, status, error, o);
	op->qp->open--;
	release(op);
	return tell;
}

// advance begins the next part of a long read or write. It returns 0 if there is none, and an
// error of libfabric if it fails.
static int advance(struct mo_op *op)
{
	mo_qp *q = op->qp;
	if (op->left == 0)
		return 0;
	op->body = (uint8_t *)op->body + op->body_len;
	op->remote += op->body_len;
	if (op->left < op->body_len)
		op->body_len = op->left;
	op->left -= op->body_len;
	struct mo_peer *p = mo_peer_of(q, op->peer);
	int rc = p->deferred ? -FI_EAGAIN : mo_issue(q, p, op);
	if (rc == -FI_EAGAIN)
		mo_defer(q, p, op);
	else if (rc)
		return rc;
	return MO_WAITS;
}

// completed continues an operation of which the provider has completed a part, or all. It
// returns 1 if it made a completion.
static int completed(struct mo_op *op, mo_done *o)
{
	int rc = advance(op);
	if (rc == MO_WAITS)
		return 0;
	return finish(op, rc ? mo_status_of(-rc) : MO_STATUS_OK, -rc, o);
}

// mo_end ends an operation outside Poll: the next Poll reports it.
void mo_end(struct mo_op *op, int status, int error)
{
	mo_qp *q = op->qp;
	mo_cq *c = q->send;
	mo_done *o;
	if (is_inline(op) && status == MO_STATUS_OK) {
		finish(op, status, error, NULL);
		return;
	}
	struct mo_ended *e = malloc(sizeof *e);
	if (!e)
		return; // without memory it cannot be reported
	o = &e->done;
	finish(op, status, error, o);
	e->next = NULL;
	*c->ended_tail = e;
	c->ended_tail = &e->next;
	c->odd = 1;
}

// refused reports whether an error means that the peer does not grant access. verbs has one
// error for everything and reports the cause in prov_errno, an ibv_wc_status.
static int refused(mo_device *d, const struct fi_cq_err_entry *e)
{
	enum { REMOTE_INVALID_REQUEST = 9, REMOTE_ACCESS = 10 };
	return e->err == FI_EIO && !strncmp(d->info->fabric_attr->prov_name, "verbs", 5) &&
	       (e->prov_errno == REMOTE_INVALID_REQUEST || e->prov_errno == REMOTE_ACCESS);
}

// failed handles an error. It returns 1 if it made a completion.
static int failed(mo_cq *c, mo_qp *closing, mo_done *o)
{
	struct fi_cq_err_entry e = {0};
	if (fi_cq_readerr(c->fid, &e, 0) <= 0 || !e.op_context)
		return 0;
	struct mo_op *op = e.op_context;
	if (op->kind == MO_KIND_RECV) {
		struct mo_rx *r = e.op_context;
		if (r->qp != closing && e.err != FI_ECANCELED) {
			atomic_fetch_add(&c->dev->dropped, 1); // longer than any of ours
			mo_rx_post(r);
		}
		return 0;
	}
	if (op->kind == MO_KIND_FREE)
		return 0;
	int status = refused(c->dev, &e) ? MO_STATUS_ACCESS : mo_status_of(e.err);
	if (status == MO_STATUS_FLUSHED && op->qp != closing)
		status = MO_STATUS_GONE; // the provider has closed the connection
	if (o)
		return finish(op, status, e.err, o);
	mo_end(op, status, e.err);
	return 0;
}

// mo_drain reads all completions outside Poll and stores them for it: to make room, or so that a
// queue pair can be closed, whose messages are then dropped.
void mo_drain(mo_cq *c, mo_qp *closing)
{
	struct fi_cq_msg_entry e;
	for (int rounds = 0; rounds < 1 << 16; rounds++) {
		ssize_t k = fi_cq_read(c->fid, &e, 1);
		if (k == -FI_EAVAIL) {
			failed(c, closing, NULL);
			continue;
		}
		if (k <= 0)
			return;
		struct mo_op *op = e.op_context;
		if (op->kind == MO_KIND_RECV) {
			struct mo_rx *r = e.op_context;
			if (r->qp != closing) {
				r->len = e.len;
				mo_chain_add(&c->came, r);
				c->odd = 1;
			}
		} else if (op->kind != MO_KIND_FREE) {
			int rc = op->qp == closing ? 0 : advance(op);
			if (rc != MO_WAITS)
				mo_end(op, op->left ? MO_STATUS_FLUSHED : rc ? mo_status_of(-rc) : MO_STATUS_OK, -rc);
		}
	}
}

// oddities does the rare work of Poll besides reading completions.
static int oddities(mo_cq *c, int max)
{
	int n = 0;
	struct mo_rx *r;
	struct mo_ended *e;
	mo_blocks_free(c->garbage);
	c->garbage = NULL;
	c->odd = 0;
	while (n < max && (e = c->ended)) {
		c->done[n++] = e->done;
		if (!(c->ended = e->next))
			c->ended_tail = &c->ended;
		free(e);
	}
	while (n < max && (r = mo_chain_take(&c->came)))
		n += deliver(c, r, r->len, &c->done[n]);
	for (mo_qp *q = c->dev->qps; q; q = q->next) {
		if (q->send == c && q->deferred) {
			mo_retry(q);
			c->odd |= q->deferred != NULL;
		}
		if (q->recv != c)
			continue;
		struct mo_chain again = q->unposted;
		q->unposted = (struct mo_chain){0};
		while ((r = mo_chain_take(&again)))
			mo_rx_post(r);
		while (n < max && q->waiting.first && q->srq->count)
			r = mo_chain_take(&q->waiting), n += take(c, r, r->len, &c->done[n]);
		if (n < max && q->srq->low) {
			q->srq->low = 0;
			c->done[n++] = (mo_done){.op = MO_LOW_WATER, .len = q->srq->count, .slot = MO_NO_SLOT};
		}
		if (q->unposted.first || (q->waiting.first && q->srq->count) || q->srq->low)
			c->odd = 1;
	}
	if (c->ended || c->came.first)
		c->odd = 1;
	return n;
}

// mo_poll fills c->done and returns the number.
int mo_poll(mo_cq *c, int max)
{
	struct fi_cq_msg_entry e[16];
	struct mo_rx *r;
	int n = 0;
	mo_lock(c->dev);
	while ((r = mo_chain_take(&c->lent)))
		mo_rx_post(r);
	if (c->odd)
		n = oddities(c, max);
	if (max == 0)
		fi_cq_read(c->fid, NULL, 0);
	// Internal completions do not count, but the loop must be bounded: each round reads some
	// that an own message caused.
	for (int turns = 0; n < max && turns < 64; turns++) {
		int want = max - n < 16 ? max - n : 16, before = n;
		ssize_t k = fi_cq_read(c->fid, e, (size_t)want);
		if (k == -FI_EAVAIL) {
			n += failed(c, NULL, &c->done[n]);
			continue;
		}
		if (k <= 0)
			break;
		for (int i = 0; i < k; i++) {
			struct mo_op *op = e[i].op_context;
			if (op->kind == MO_KIND_RECV)
				n += deliver(c, e[i].op_context, e[i].len, &c->done[n]);
			else if (op->kind != MO_KIND_FREE)
				n += completed(op, &c->done[n]);
		}
		// Fewer than requested means that there are no more. If none was for the user, the
		// provider has not polled the network yet.
		if (k < want && n > before)
			break;
	}
	mo_unlock(c->dev);
	return n;
}
