//go:build ofi && cgo && linux

// Shared by the C files of this package and not visible to Go.

#ifndef MUSTER_OFI_INSIDE_H
#define MUSTER_OFI_INSIDE_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "shim.h"

// The structures of libfabric are used as in this version of its interface, whatever the
// headers and the library are: FABRIC_1.3 selects the matching functions, and the number
// requests this version from providers.
#define MO_API FI_VERSION(1, 17)

struct mo_library {
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
	void (*freeinfo)(struct fi_info *);
	struct fi_info *(*dupinfo)(const struct fi_info *);
	int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	const char *(*strerror)(int);
	uint32_t (*version)(void);
};

struct mo_offers {
	mo_library *lib;
	struct fi_info *list;
	int count;
};

// Signal handlers, to be restored after foreign code has run.
struct mo_handlers {
	struct sigaction of[NSIG];
	char known[NSIG];
};
// kallsyms.c
void mo_spare_kernel_symbols(void *library);

void mo_handlers_save(struct mo_handlers *h);
void mo_handlers_restore(const struct mo_handlers *h);

// Every message begins with this header, so that its receiver knows the sender without the
// provider's help, and drops messages of other jobs.
struct mo_header {
	uint64_t job;
	uint32_t from;
	uint16_t size; // of the header: identifies the format
	uint16_t check;
};
#define MO_HEADER ((size_t)sizeof(struct mo_header))
_Static_assert(sizeof(struct mo_header) == MO_HEADER_BYTES, "Go counts on it");
#define MO_CHECK 0x6d75 // "mu"

enum mo_kind { MO_KIND_FREE, MO_KIND_RECV, MO_KIND_SEND, MO_KIND_INLINE, MO_KIND_WRITE, MO_KIND_INLINE_WRITE, MO_KIND_READ };

// Room for a message in the request itself; most are that short.
#define MO_SMALL 448

// mo_op is an outstanding operation. ctx belongs to the provider and comes first.
struct mo_op {
	struct fi_context2 ctx;
	uint8_t kind;
	uint32_t slot;
	uint32_t peer;
	uint64_t id, len;
	mo_qp *qp;
	struct mo_op *next; // in the list of free or deferred ones
	struct mo_big *big; // the message, if it is not in small
	size_t message;     // bytes of it
	void *body;         // the caller's memory
	size_t body_len;
	size_t left;        // of the caller's memory, when a read or write is split into parts
	void *body_desc;
	uint64_t remote, rkey;
	void *desc; // of small
	uint8_t small[MO_SMALL] __attribute__((aligned(64)));
};

// mo_big is a large send buffer.
struct mo_big {
	struct mo_big *next;
	uint8_t *mem;
	void *desc;
	struct mo_big *all; // the arrays they were allocated in
};

// mo_ended is a completion for the next Poll.
struct mo_ended {
	struct mo_ended *next;
	mo_done done;
};

// mo_rx is a receive buffer. ctx comes first, then kind as in mo_op.
struct mo_rx {
	struct fi_context2 ctx;
	uint8_t kind;
	mo_qp *qp;
	struct mo_rx *next; // lent, waiting or to be posted
	uint8_t *mem;
	void *desc;
	uint64_t len; // of the message that waits
};

struct mo_chain { // a queue of receive buffers
	struct mo_rx *first, *last;
};

// mo_block is mapped memory, registered if required.
struct mo_block {
	struct mo_block *next;
	void *mem;
	size_t len;
	struct fid_mr *mr;
};

struct mo_region {
	struct fid_mr *mr;
};

// mo_peer is the state of a resolved peer.
struct mo_peer {
	fi_addr_t addr;
	uint32_t deferred; // work that the provider has not accepted yet
	uint32_t walk;     // the last retry in which it accepted nothing
	uint64_t since;    // when it began to accept nothing, in ms; 0: it accepts
	int gone;          // why it will never accept anything, while there is deferred work
	int probe;         // a socket that tries to reach the peer, plus 1
	struct sockaddr_storage name;
};

#define MO_PAGE 256
#define MO_PAGES 65536 // so 2^24 peers

struct mo_device {
	atomic_flag lock;
	mo_library *lib;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	mo_setup setup;
	int transport;
	uint64_t mr_mode;
	size_t iov;
	uint64_t max_msg;
	struct mo_header header; // of all messages

	struct mo_peer **peers[MO_PAGES]; // pages of pointers
	void **lkeys; // descriptors by LKey
	uint32_t lkey_count;

	struct mo_op *free_ops;
	struct mo_op **ops; // by slot
	uint32_t op_count, op_room;
	struct mo_big *free_bigs, *bigs;
	uint32_t big_count;
	struct mo_block *blocks; // for ops and bigs
	mo_qp *qps;              // open ones
	mo_qp *bound;            // registrations belong to this endpoint (FI_MR_ENDPOINT)
	uint64_t own_keys;       // keys of this package's own registrations
	atomic_uint_fast64_t dropped;
};

struct mo_cq {
	mo_device *dev;
	struct fid_cq *fid;
	struct fid_wait *set; // the wait set of its descriptor, if that is not the queue
	int fd;               // what to wait on, or -1
	int odd;              // there is more to do than reading completions
	struct mo_chain lent; // by the last Poll
	struct mo_chain came; // messages received while a queue pair was closed
	struct mo_ended *ended, **ended_tail;
	struct mo_block *garbage; // of closed queue pairs, lent until the next Poll
	mo_done done[MO_BATCH];
};

struct mo_posted {
	uint64_t id;
	uint8_t *mem;
	size_t len;
	uint32_t slot;
};

struct mo_srq {
	mo_device *dev;
	uint32_t tag;
	int lend;
	uint32_t depth, low_water;
	struct mo_posted *ring; // of depth
	uint32_t head, count;
	uint32_t *free_slots;
	uint32_t free_count;
	int low; // fewer than low_water are left, and not yet reported
};

struct mo_qp {
	mo_device *dev;
	mo_qp *next;
	int transport;
	struct fid_ep *ep;
	mo_cq *send, *recv;
	mo_srq *srq;
	uint32_t depth, open; // outstanding work
	struct mo_rx *rx;
	uint32_t rx_count;
	struct mo_chain waiting;  // messages without a posted buffer
	struct mo_chain unposted; // buffers that the provider did not accept
	struct mo_block *blocks;  // of the receive buffers
	struct mo_op *deferred, **deferred_tail;
	uint32_t walk;
	// Connected queue pairs only: the passive endpoint, and the peer.
	struct fid_pep *pep;
	struct fid_eq *eq;
	struct mo_peer other;
	uint32_t other_index;
	int connected, buffers;
	uint32_t slots[MO_BATCH];
};

static inline void mo_lock(mo_device *d)
{
	while (atomic_flag_test_and_set_explicit(&d->lock, memory_order_acquire))
		sched_yield();
}

static inline void mo_unlock(mo_device *d) { atomic_flag_clear_explicit(&d->lock, memory_order_release); }

static inline void mo_chain_add(struct mo_chain *c, struct mo_rx *r)
{
	r->next = NULL;
	if (c->last)
		c->last->next = r;
	else
		c->first = r;
	c->last = r;
}

static inline struct mo_rx *mo_chain_take(struct mo_chain *c)
{
	struct mo_rx *r = c->first;
	if (r && !(c->first = r->next))
		c->last = NULL;
	return r;
}

// device.c
int mo_block_new(mo_device *d, struct mo_block **list, size_t len, struct mo_block **out);
void mo_blocks_free(struct mo_block *list);
static inline void *mo_block_desc(struct mo_block *b) { return b->mr ? fi_mr_desc(b->mr) : NULL; }

// queues.c
int mo_enable(mo_qp *q);

// connect.c
int mo_listen(mo_qp *q);

// traffic.c
void mo_rx_post(struct mo_rx *r);
void mo_drain(mo_cq *c, mo_qp *closing);
void mo_end(struct mo_op *op, int status, int error);

// deferred.c
void mo_defer(mo_qp *q, struct mo_peer *p, struct mo_op *op);
void mo_retry(mo_qp *q);
int mo_issue(mo_qp *q, struct mo_peer *p, struct mo_op *op);

static inline struct mo_peer *mo_peer_of(mo_qp *q, uint32_t peer)
{
	if (q->transport == MO_RC)
		return q->connected ? &q->other : NULL;
	struct mo_peer **page = peer / MO_PAGE < MO_PAGES ? q->dev->peers[peer / MO_PAGE] : NULL;
	return page ? page[peer % MO_PAGE] : NULL;
}

int mo_status_of(int err);

#endif
