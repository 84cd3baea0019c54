/* Short messages over shared memory, without entering the core.
 *
 * The front uses the rings and the words of the link in place, as SendOne, PostSend, Poll
 * and Arrived of the core do. It holds the lock of the engine meanwhile: the lock is biased
 * to the goroutine on which the calling thread runs in Go, and taking it is a store and a
 * load (internal/engine/lock.go). Once a second thread has used the library there is no bias,
 * and every call goes to the core.
 *
 * Receives that the program posts are in a queue of the front until a message arrives for
 * them. A message is matched with that queue only, which is exact as long as the core has
 * neither receives nor unexpected messages (quiet). Whatever the front does not handle (a
 * message that no receive waits for, a rendezvous, truncation, an error, a long wait) is left
 * as it is, and the call goes to the core, which posts the receives of the queue first and
 * takes the message itself. A wait enters the core after some microseconds, where dead
 * ranks, signals, other devices and the yielding of cores are dealt with. */

#include "front.h"
#include "direct.h"

#include <string.h>

struct muster_front muster_front;

#if DIRECT_PATH

enum {
	POLL_BATCH = 16,

	QUEUE_ROOM = 4096,    /* longer receives are posted at once: a rendezvous may follow */
	MAX_AWAY = 256,	      /* receives between two calls of the core, which polls everything */
	TESTS_AWAY = 32,      /* tests without result between two calls of the core */
	FIRST_ATTEMPT = 32,   /* calls of the core before the first attempt to share */
	LAST_ATTEMPT = 4096,
};

#define F muster_front
#define E muster_front.engine
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define compiler_barrier() __asm__ volatile("" ::: "memory")

/* The goroutine of this thread, if the lock was biased to it. */
static __thread uint64_t me __attribute__((tls_model("initial-exec")));

/* Accessed with the lock held. */
static struct muster_peer *starved; /* its producer waits for room that was released */
static int away;	    /* receives since the last call of the core */
static unsigned tests;	    /* tests without result */
static unsigned cursor = 1; /* where to look for a free receive */

static inline int enter(void)
{
	if (me == 0)
		return 0;
	*(volatile uint64_t *)E.inside = 1;
	compiler_barrier();
	if (likely(*(volatile uint64_t *)E.bias == me))
		return 1;
	*(volatile uint64_t *)E.inside = 0;
	return 0;
}

/* leave releases the lock, and lets the core wake a producer that waits for room. */
static inline void leave(void)
{
	struct muster_peer *p = starved;

	starved = NULL;
	compiler_barrier();
	*(volatile uint64_t *)E.inside = 0;
	if (unlikely(p != NULL)) {
		uint64_t a[] = {(uint64_t)(p - F.peers)};
		muster_call(CORE_WAKE, a);
	}
}

void muster_direct_close(void)
{
	me = 0;
	memset(F.comms, 0, sizeof F.comms);
}

/* attempt asks the core now and then to share a communicator and a peer. Attempts become
 * rare if they fail: the peer is on another host, or several threads use the library. */
static void attempt(abi_handle comm, int rank)
{
	static unsigned calls, next = FIRST_ATTEMPT;
	uint64_t a[] = {(uint64_t)(int64_t)number_of(comm), (uint64_t)(int64_t)rank, 0};

	if (++calls < next)
		return;
	calls = 0;
	muster_call(CORE_SHARE, a);
	me = a[0];
	if (a[2])
		next = FIRST_ATTEMPT;
	else if (next < LAST_ATTEMPT)
		next *= 2;
}

static inline struct muster_comm *find_comm(abi_handle h)
{
	int comm = number_of(h);
	unsigned slot = 0;
	struct muster_comm *c;

	if (comm != COMM_WORLD) {
		slot = ((unsigned)comm & SLOT_MASK) + 1;
		if (((unsigned)comm & ~SLOT_MASK) != MADE_COMM || slot >= MAX_COMMS)
			return NULL;
	}
	c = &F.comms[slot];
	return likely(__atomic_load_n(&c->handle, __ATOMIC_ACQUIRE) == comm) ? c : NULL;
}

/* world returns the rank in the world, or -1. */
static inline int world(struct muster_comm *c, int rank)
{
	int w;

	if (unlikely((unsigned)rank >= (unsigned)c->size))
		return -1;
	w = c->ranks ? c->ranks[rank] : rank;
	return w < MAX_PEERS ? w : -1;
}

/* length returns the bytes of a buffer, or -1 if the core has to look at it. */
static inline int64_t length(const void *buf, int64_t count, abi_handle h)
{
	int datatype = number_of(h);

	if (unlikely(F.types[datatype & 0xff] != (uint32_t)datatype || count < 0 || (buf == NULL && count > 0)))
		return -1;
	return count * (datatype >> 8 & 0xff);
}

static inline void prefetch_write(const void *p) { __asm__ volatile("prefetchw %0" ::"m"(*(const char *)p)); }

static inline void prefetch_lines(const uint8_t *p, uint64_t n, int write)
{
	uint64_t i;

	for (i = 0; i < n; i += 64) {
		if (write)
			prefetch_write(p + i);
		else
			__builtin_prefetch(p + i, 0, 2);
	}
}

static inline void demote(const uint8_t *p, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i += 64)
		__asm__ volatile(".byte 0x0f, 0x1c, 0x00" ::"a"(p + i)); /* CLDEMOTE */
}

/* span is span of ring.go: where n bytes are in a byte ring. */
static inline uint64_t span(uint64_t at, uint64_t n, uint64_t size, uint64_t *next)
{
	uint64_t from = at & (size - 1);

	n = (n + 63) & ~63ull;
	if (from + n > size) {
		at += size - from;
		from = 0;
	}
	*next = at + n;
	return from;
}

static inline void copy(void *to, const void *from, uint64_t n)
{
	if (n == 8)
		__builtin_memcpy(to, from, 8);
	else
		memcpy(to, from, n);
}

/* put sends a message if the link has credit and the ring has room. The lock is held. It
 * returns 0 if the core has to, and 2 if the core has to wake the peer. */
static inline int put(struct muster_peer *p, uint32_t context, int rank, int tag, const void *buf, uint64_t n)
{
	uint64_t pos, came, len = HEAD + n, *size;
	struct ring_cell *c;
	uint64_t head[4];
	uint32_t state;

	if (unlikely(!*p->open || *p->wait != 0 || (int64_t)n > *p->one_max || *p->credit < (int64_t)n + EAGER_CHARGE ||
		     *p->gone || *p->fenced || !*E.unfenced || *E.closed))
		return 0;
	pos = *p->out.pos;
	if (unlikely(pos - *p->out.cells_seen >= p->out.cell_count)) {
		*p->out.cells_seen = __atomic_load_n(&p->out.head->cells, __ATOMIC_ACQUIRE);
		if (pos - *p->out.cells_seen >= p->out.cell_count)
			return 0;
	}
	c = &p->out.cells[pos & (p->out.cell_count - 1)];
	came = *E.came;
	head[0] = EAGER | (uint64_t)*p->send_seq << 32;
	head[1] = context | (uint64_t)(uint32_t)rank << 32;
	head[2] = (uint32_t)tag;
	head[3] = n;
	if (len <= INLINE) {
		c->data[0] = head[0], c->data[1] = head[1], c->data[2] = head[2], c->data[3] = head[3];
		copy(&c->data[4], buf, n);
	} else {
		uint64_t next, from = span(*p->out.at, len, p->out.byte_count, &next);

		if (next - *p->out.bytes_seen > p->out.byte_count) {
			*p->out.bytes_seen = __atomic_load_n(&p->out.head->bytes, __ATOMIC_ACQUIRE);
			if (next - *p->out.bytes_seen > p->out.byte_count)
				return 0;
		}
		memcpy(p->out.bytes + from, head, HEAD);
		memcpy(p->out.bytes + from + HEAD, buf, n);
		if (len <= DEMOTE_UP_TO && *p->out.came != came)
			demote(p->out.bytes + from, len);
		*p->out.at = next;
	}
	__atomic_store_n(&c->tag, ((pos >> p->out.shift) + 1) << 32 | KIND_DATA << 24 | len, __ATOMIC_RELEASE);
	compiler_barrier();
	/* Nothing may come between the publication and this load: rdma/shm, wait.go. */
	state = __atomic_load_n(p->sleeper, __ATOMIC_RELAXED);
	*p->out.pos = ++pos;
	++*p->send_seq;
	*p->credit -= (int64_t)n + EAGER_CHARGE;
	++*p->eager;
	p->recent[*p->sent % RECENT_LEN] = (uint64_t)context << 32 | (uint32_t)tag;
	++*p->sent;
	*p->bytes_sent += n;
	size = E.sizes + 2 * (n ? 64 - __builtin_clzll(n) : 0);
	size[0]++;
	size[1] += n;
	++*E.sent;
	if (*p->out.came != came)
		*p->out.came = came, *p->out.streak = 0;
	else
		++*p->out.streak;
	if (len > INLINE) {
		uint64_t next, from = span(*p->out.at, len, p->out.byte_count, &next);

		if (next - *p->out.bytes_seen <= p->out.byte_count)
			prefetch_lines(p->out.bytes + from, len, 1);
	} else if (*p->out.streak > REACH_AFTER) {
		uint64_t at = *p->out.streak == REACH_AFTER + 1 ? pos : pos + REACH_AHEAD;

		for (; at <= pos + REACH_AHEAD && at - *p->out.cells_seen < p->out.cell_count; at++)
			prefetch_write(&p->out.cells[at & (p->out.cell_count - 1)]);
	} else if (*p->out.streak == 0) {
		prefetch_write(&p->out.cells[pos & (p->out.cell_count - 1)]);
	}
	return state == 1 || state == 2 ? 2 : 1; /* asleep, closed */
}

int muster_direct_send(const void *buf, int64_t count, abi_handle datatype, int dest, int tag, abi_handle comm)
{
	struct muster_comm *c = find_comm(comm);
	int64_t n = length(buf, count, datatype);
	int w, sent = 0;

	if (unlikely(c == NULL || n < 0 || tag < 0 || (w = world(c, dest)) < 0 || F.peers[w].out.pos == NULL || !enter())) {
		attempt(comm, dest);
		return 0;
	}
	sent = put(&F.peers[w], c->context, c->rank, tag, buf, (uint64_t)n);
	leave();
	if (unlikely(sent == 2)) {
		uint64_t a[] = {(uint64_t)w};
		muster_call(CORE_WAKE, a);
	}
	return sent;
}

int muster_direct_isend(const void *buf, int64_t count, abi_handle datatype, int dest, int tag, abi_handle comm, abi_handle *request)
{
	if (request == NULL || !muster_direct_send(buf, count, datatype, dest, tag, comm))
		return 0;
	*request = handle_of((int)(MADE_REQUEST | DIRECT)); /* number 0: a send that is complete */
	return 1;
}

/* quiet reports that the core has nothing that a message could be for, and nothing to do. */
static inline int quiet(void)
{
	return *E.operations == *E.free_operations && (*E.driven | *E.failed) == 0 &&
	       (*E.blocked | *E.connecting | *E.unexpected) == 0 && !*E.closed;
}

static inline int ready(struct muster_peer *p)
{
	return (uint32_t)(__atomic_load_n(&(*p->in.cell)->tag, __ATOMIC_ACQUIRE) >> 32) == *p->in.lap;
}

/* await is await of ring.go: the first look after a send is late, so that it does not take
 * the line from the producer. */
static inline int await(struct muster_peer *p)
{
	int i;

	if (*p->in.asked == *E.sent)
		return ready(p);
	*p->in.asked = *E.sent;
	if (*p->in.late)
		for (i = 0; i < ANSWER_DELAY; i++)
			compiler_barrier();
	*p->in.late = !ready(p);
	return !*p->in.late;
}

/* matching returns the position in the queue of the receive for a message, or last. */
static inline uint64_t matching(uint32_t context, int32_t source, int32_t tag)
{
	uint64_t i;

	for (i = F.first; i != F.last; i++) {
		struct muster_receive *r = F.queue[i & (MAX_QUEUE - 1)];

		if (r != NULL && r->context == context && (r->source == source || r->source < 0) && (r->tag == tag || r->tag < 0))
			break;
	}
	return i;
}

static inline void unqueue(uint64_t i)
{
	F.queue[i & (MAX_QUEUE - 1)] = NULL;
	while (F.first != F.last && F.queue[F.first & (MAX_QUEUE - 1)] == NULL)
		F.first++;
}

/* publish_positions is publishPositions of ring.go. */
static void publish_positions(struct muster_peer *p)
{
	__atomic_store_n(&p->in.head->bytes, *p->in.at, __ATOMIC_RELEASE);
	__atomic_exchange_n(&p->in.head->cells, *p->in.pos, __ATOMIC_SEQ_CST);
	*p->in.publish_cells = *p->in.pos + p->in.cell_count / 4;
	*p->in.publish_bytes = *p->in.at + p->in.byte_count / 4;
	if (__atomic_load_n(&p->in.head->wanted, __ATOMIC_RELAXED) != 0)
		starved = p;
}

/* get takes the next message of a ring, once ready, if a receive of the queue waits for it
 * and nothing else has to happen. It returns 0 if the core has to take it. Everything that
 * the producer can write is read once. */
static inline int get(struct muster_peer *p)
{
	struct ring_cell *c = *p->in.cell;
	uint64_t tag = __atomic_load_n(&c->tag, __ATOMIC_ACQUIRE), len = tag & 0xffffff, i, n, next = *p->in.at;
	const uint64_t *head = c->data;
	struct muster_receive *r;
	uint64_t where;

	if (unlikely((tag >> 24 & 0xff) != KIND_DATA || len < HEAD || len > MAX_SEND))
		return 0;
	if (len > INLINE) {
		uint64_t from = span(next, len, p->in.byte_count, &next);

		head = (const uint64_t *)(p->in.bytes + from);
		prefetch_lines((const uint8_t *)head, len, 0);
	}
	n = len - HEAD;
	where = head[1];
	if (unlikely(head[0] != (EAGER | (uint64_t)*p->recv_seq << 32) || head[2] >> 32 != 0 || head[3] != n))
		return 0;
	tag = head[2];
	i = matching((uint32_t)where, (int32_t)(where >> 32), (int32_t)tag);
	if (unlikely(i == F.last))
		return 0;
	r = F.queue[i & (MAX_QUEUE - 1)];
	if (unlikely(n > r->room || *p->consumed + (int64_t)n + EAGER_CHARGE >= *p->granted >> 2))
		return 0;
	copy((void *)(uintptr_t)r->buf, head + 4, n);
	r->got = n;
	r->got_source = (int32_t)(where >> 32);
	r->got_tag = (int32_t)tag;
	unqueue(i);
	__atomic_store_n(&r->state, RECEIVE_DONE, __ATOMIC_RELEASE);
	*p->consumed += (int64_t)n + EAGER_CHARGE;
	++*p->recv_seq;
	++*p->received;
	*p->bytes_received += n;
	++*E.came;
	*p->in.at = next;
	i = ++*p->in.pos;
	*p->in.cell = &p->in.cells[i & (p->in.cell_count - 1)];
	*p->in.lap = (uint32_t)(i >> p->in.shift) + 1;
	return 1;
}

/* look_ahead is lookAhead of ring.go. */
static inline void look_ahead(struct muster_peer *p)
{
	uint64_t i = *p->in.pos & (p->in.cell_count - 1), k;

	if (i + LOOK_CELLS < p->in.cell_count &&
	    (uint32_t)(__atomic_load_n(&p->in.cells[i + LOOK_CELLS].tag, __ATOMIC_RELAXED) >> 32) == *p->in.lap)
		for (k = 1; k < LOOK_CELLS; k++)
			__builtin_prefetch(&p->in.cells[i + k], 0, 2);
}

/* poll takes the messages of a ring. It returns their number, or -1 if the next one is for
 * the core. */
static inline int poll(struct muster_peer *p)
{
	int k = 0;

	if (*p->in.pause > 0) {
		--*p->in.pause;
		__builtin_ia32_pause();
		return 0;
	}
	if (!await(p))
		return 0;
	if (*p->held != 0 || *p->one_max < 0)
		return -1;
	do {
		if ((k & (LOOK_CELLS - 1)) == 0 && *p->in.sent == *E.sent)
			look_ahead(p);
		if (!get(p)) {
			k = k > 0 ? k : -1;
			break;
		}
		k++;
	} while (k < POLL_BATCH && F.first != F.last && ready(p));
	if (*p->in.sent != *E.sent)
		*p->in.sent = *E.sent, *p->in.streak = 0;
	else if (++*p->in.streak > STREAM_AFTER && k < STREAM_BATCH)
		*p->in.pause = STREAM_PAUSE;
	if (*p->in.pos >= *p->in.publish_cells || *p->in.at >= *p->in.publish_bytes)
		publish_positions(p);
	return k;
}

/* progress polls until a receive is done, for a limited time. A receive for which a
 * rendezvous may come is posted in the core, where it takes part in the transfer. */
static inline int progress(struct muster_peer *p, struct muster_receive *r)
{
	int64_t i;

	if ((int64_t)r->room > *p->one_max)
		return 0;
	if (++away > MAX_AWAY) {
		away = 0;
		return 0;
	}
	for (i = F.spin; i > 0; i--) {
		int k = poll(p);

		if (r->state == RECEIVE_DONE)
			return 1;
		if (k < 0)
			return 0;
		if (k > 0)
			i = F.spin;
	}
	return 0;
}

/* The error field of the status of a single call is left alone. */
static inline void set_status(void *at, const struct muster_receive *r)
{
	struct status *s = at;

	if ((uintptr_t)at <= 1)
		return;
	s->low = (int32_t)(r ? r->got : 0);
	s->high = r ? (int32_t)(r->got >> 32 << HIGH_SHIFT) : 0;
	NOT_CANCELLED(s);
	s->source = r ? r->got_source : ANY_SOURCE;
	s->tag = r ? r->got_tag : ANY_TAG;
}

/* prepare fills in a receive. It returns 0 if the core has to do it. */
static inline int prepare(struct muster_receive *r, void *buf, int64_t count, abi_handle datatype, int source, int tag, abi_handle comm)
{
	struct muster_comm *c = find_comm(comm);
	int64_t n = length(buf, count, datatype);

	if (unlikely(c == NULL || n < 0 || (tag < 0 && tag != ANY_TAG)))
		return 0;
	r->peer = -1;
	if (source != ANY_SOURCE && ((r->peer = world(c, source)) < 0 || F.peers[r->peer].in.pos == NULL))
		return 0;
	r->buf = (uintptr_t)buf;
	r->room = (uint64_t)n;
	r->context = c->context;
	r->source = source == ANY_SOURCE ? -1 : source;
	r->tag = tag == ANY_TAG ? -1 : tag;
	r->comm = c->handle;
	r->state = RECEIVE_PENDING;
	return 1;
}

static inline int enqueue(struct muster_receive *r)
{
	if (F.last - F.first == MAX_QUEUE || !quiet())
		return 0;
	F.queue[F.last++ & (MAX_QUEUE - 1)] = r;
	return 1;
}

int muster_direct_recv(void *buf, int64_t count, abi_handle datatype, int source, int tag, abi_handle comm, void *status)
{
	struct muster_receive r;
	int done = 0;

	if (unlikely(!prepare(&r, buf, count, datatype, source, tag, comm) || r.peer < 0 || !enter())) {
		attempt(comm, source);
		return 0;
	}
	if (likely(enqueue(&r))) {
		done = progress(&F.peers[r.peer], &r);
		if (!done) { /* it is the last one */
			unqueue(--F.last);
		}
	}
	leave();
	if (done)
		set_status(status, &r);
	return done;
}

int muster_direct_irecv(void *buf, int64_t count, abi_handle datatype, int source, int tag, abi_handle comm, abi_handle *request)
{
	struct muster_receive *r = NULL, like;
	int i;

	if (unlikely(request == NULL || !prepare(&like, buf, count, datatype, source, tag, comm) || !enter())) {
		attempt(comm, source);
		return 0;
	}
	for (i = 0; i < 8 && like.room <= QUEUE_ROOM; i++) {
		unsigned at = cursor;

		cursor = cursor + 1 < MAX_RECEIVES ? cursor + 1 : 1; /* number 0 is a send */
		if (__atomic_load_n(&F.receives[at].state, __ATOMIC_ACQUIRE) == RECEIVE_FREE) {
			r = &F.receives[at];
			break;
		}
	}
	if (r != NULL) {
		*r = like;
		if (enqueue(r))
			*request = handle_of((int)(MADE_REQUEST | DIRECT | (unsigned)(r - F.receives)));
		else
			r->state = RECEIVE_FREE, r = NULL;
	}
	leave();
	return r != NULL;
}

/* direct returns the number of a request that the front has made, or -1. */
static inline int direct(abi_handle h)
{
	unsigned request = (unsigned)number_of(h), n = request & DIRECT_MASK;

	return (request & ~DIRECT_MASK) == (MADE_REQUEST | DIRECT) && n < MAX_RECEIVES ? (int)n : -1;
}

/* complete reports whether a request is complete, after some polling. The lock is held if
 * locked is set. */
static inline int complete(int n, int locked)
{
	struct muster_receive *r = &F.receives[n];

	if (n == 0 || __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == RECEIVE_DONE)
		return 1;
	return locked && r->state == RECEIVE_PENDING && r->peer >= 0 && quiet() && progress(&F.peers[r->peer], r);
}

/* finish frees a request that is complete. */
static inline void finish(abi_handle *request, int n, void *status)
{
	struct muster_receive *r = n ? &F.receives[n] : NULL;

	set_status(status, r);
	if (r != NULL)
		__atomic_store_n(&r->state, RECEIVE_FREE, __ATOMIC_RELEASE);
	*request = NULL_REQUEST;
}

int muster_direct_wait(abi_handle *request, void *status)
{
	int n, done;

	if (request == NULL || (n = direct(*request)) < 0)
		return 0;
	done = complete(n, 0);
	if (!done && enter()) {
		done = complete(n, 1);
		leave();
	}
	if (done)
		finish(request, n, status);
	return done;
}

int muster_direct_waitall(int count, abi_handle *requests, void *statuses)
{
	int i, n, locked = 0, done = count > 0 && requests != NULL;
	struct status *s = (uintptr_t)statuses > 1 ? statuses : NULL;

	for (i = 0; i < count && done; i++) {
		if (requests[i] == NULL_REQUEST)
			continue;
		n = direct(requests[i]);
		if (n < 0) {
			done = 0;
		} else if (!complete(n, 0)) {
			if (!locked)
				locked = enter();
			done = complete(n, locked);
		}
	}
	if (locked)
		leave();
	if (!done)
		return 0;
	for (i = 0; i < count; i++) {
		if (requests[i] == NULL_REQUEST)
			set_status(s ? s + i : NULL, NULL);
		else
			finish(&requests[i], direct(requests[i]), s ? s + i : NULL);
	}
	return 1;
}

int muster_direct_test(abi_handle *request, int *flag, void *status)
{
	int n, done, k = -1;

	if (request == NULL || flag == NULL || (n = direct(*request)) < 0)
		return 0;
	done = complete(n, 0);
	if (!done && ++tests % TESTS_AWAY != 0 && enter()) {
		struct muster_receive *r = &F.receives[n];

		if (r->state == RECEIVE_PENDING && r->peer >= 0 && quiet())
			k = poll(&F.peers[r->peer]);
		done = r->state == RECEIVE_DONE;
		leave();
	}
	if (!done && k < 0)
		return 0;
	*flag = done;
	if (done)
		finish(request, n, status);
	return 1;
}

int muster_direct_comm_rank(abi_handle comm, int *rank)
{
	struct muster_comm *c = find_comm(comm);

	if (c == NULL || rank == NULL)
		return 0;
	*rank = c->rank;
	return 1;
}

int muster_direct_comm_size(abi_handle comm, int *size)
{
	struct muster_comm *c = find_comm(comm);

	if (c == NULL || size == NULL)
		return 0;
	*size = c->size;
	return 1;
}

int muster_direct_get_count(void *status, abi_handle datatype, int *count)
{
	const struct status *s = status;
	int64_t n, size = length(&n, 1, datatype);

	if ((uintptr_t)status <= 1 || count == NULL || size <= 0)
		return 0;
	n = (int64_t)(uint32_t)s->low | (int64_t)((uint32_t)s->high >> HIGH_SHIFT) << 32;
	if (n > INT32_MAX)
		return 0;
	*count = n % size == 0 ? (int)(n / size) : UNDEFINED;
	return 1;
}

#else
void muster_direct_close(void) {}
#endif
