//go:build ofi && cgo && linux

// The interface between Go and the C side of this package. Everything that outlives a call is
// in C memory.

#ifndef MUSTER_OFI_SHIM_H
#define MUSTER_OFI_SHIM_H

#include <stddef.h>
#include <stdint.h>

typedef struct mo_library mo_library; // libfabric, opened
typedef struct mo_offers mo_offers;   // a result of fi_getinfo
typedef struct mo_device mo_device;   // fabric, domain and address table
typedef struct mo_cq mo_cq;
typedef struct mo_srq mo_srq; // buffers that the user posted, or lending
typedef struct mo_qp mo_qp;   // an endpoint with its buffers
typedef struct mo_region mo_region;

// Results of a call: 0 is success, positive values are these, negative ones are libfabric's.
enum {
	MO_OK = 0,
	MO_AGAIN = 1,
	MO_UNSUPPORTED,
	MO_TOO_LONG,
	MO_UNKNOWN_PEER,
	MO_BAD_LKEY,
	MO_NO_MEMORY,
};

// rdma.Transport
enum { MO_RC = 1, MO_RD = 2, MO_UD = 4 };
// rdma.Op
enum { MO_SEND = 0, MO_WRITE = 1, MO_READ = 2, MO_RECV = 5, MO_LOW_WATER = 6 };
// rdma.Flags
enum { MO_INLINE = 1 };
// rdma.Access
enum { MO_REMOTE_READ = 1, MO_REMOTE_WRITE = 2 };
// rdma.Status
enum { MO_STATUS_OK, MO_STATUS_ACCESS, MO_STATUS_TOO_LONG, MO_STATUS_GONE, MO_STATUS_FLUSHED, MO_STATUS_FAULT };

// mo_wr is rdma.SendWR as Go lays it out; a test compares the two.
typedef struct {
	uint64_t id;
	uint8_t *body;
	int64_t len;
	uint64_t remote, rkey;
	uint32_t peer, lkey;
	uint8_t op, flags;
	uint16_t head_len;
	uint8_t head[64];
} mo_wr;

// mo_done is a completion. slot identifies the memory kept alive by Go that is free again: of
// the request for sends, of the posted buffer for messages.
typedef struct {
	uint64_t id;
	uint8_t *data; // a lent message
	uint64_t len;
	uint32_t peer;
	uint32_t slot;
	uint8_t op, status;
	uint8_t lent;
	uint32_t tag;  // of the receive queue
	int32_t error; // libfabric's, if status is not OK
} mo_done;

enum {
	MO_BATCH = 64,       // completions of one crossing, work requests of one crossing
	MO_ERR_NOKEY = 266,  // FI_ENOKEY, checked in library.c
	MO_NAME_MAX = 128,   // longest endpoint name
	MO_HEADER_BYTES = 16, // precedes each message
};
#define MO_NO_SLOT 0xffffffffu

// mo_limits describes an offer.
typedef struct {
	char provider[128], fabric[128], domain[128], address[160];
	uint8_t family; // 4, 6 or 0: not an internet address
	int endpoint;   // MO_RC, MO_RD or MO_UD
	uint64_t speed;
	uint64_t max_msg;
	uint64_t mr_mode;
	uint64_t key_size;
	uint64_t rx_size;
	int prefix; // the provider requires room before messages, which this package does not support
} mo_limits;

// library.c
mo_library *mo_library_open(const char *name, uint32_t peers, char *why, size_t whylen);
void mo_library_free(mo_library *l);
uint32_t mo_library_version(mo_library *l);
const char *mo_error(mo_library *l, int code);
int mo_handlers_digest(uint8_t *out, int max);

// offers.c
int mo_offers_get(mo_library *l, const char *provider, int transport, int delivery, mo_offers **out);
int mo_offers_count(mo_offers *o);
void mo_offers_describe(mo_offers *o, int i, mo_limits *out);
void mo_offers_free(mo_offers *o);

// device.c
typedef struct {
	uint64_t job;
	uint32_t index;
	uint32_t peers;
	uint32_t buffer;   // bytes of a large send or receive buffer
	uint32_t sends;    // how many large send buffers there may be
	int delivery;      // writes can complete when the data has arrived
	uint64_t part;     // longest part of a read or write; 0: the provider's limit
} mo_setup;
int mo_device_open(mo_library *l, mo_offers *o, int i, const mo_setup *s, mo_device **out);
void mo_device_close(mo_device *d);
uint64_t mo_device_dropped(mo_device *d);
int mo_resolve(mo_device *d, uint32_t peer, const void *name, size_t len);
int mo_register(mo_device *d, uintptr_t mem, size_t len, int access, uint64_t key, mo_region **out, uint64_t *gotkey, uint64_t *base);
int mo_deregister(mo_device *d, mo_region *r);
int mo_set_lkey(mo_device *d, uint32_t lkey, mo_region *r);

// queues.c
int mo_cq_open(mo_device *d, int depth, mo_cq **out, int *fd);
mo_done *mo_cq_done(mo_cq *c);
int mo_cq_close(mo_cq *c);
enum { MO_IDLE, MO_SOON, MO_READY };
int mo_cq_ready(mo_cq *c);
mo_srq *mo_srq_new(mo_device *d, int lend, int depth, int low_water, uint32_t tag);
void mo_srq_free(mo_srq *s);
int mo_srq_post(mo_srq *s, uint64_t id, uintptr_t mem, size_t len, uint32_t *slot);
int mo_qp_open(mo_device *d, int transport, mo_cq *send, mo_cq *recv, mo_srq *srq, int depth, int buffers, mo_qp **out);
int mo_qp_name(mo_qp *q, void *name, size_t *len);
uint32_t *mo_qp_slots(mo_qp *q);
int mo_qp_close(mo_qp *q);

// connect.c
int mo_connect(mo_qp *q, int active, const void *name, size_t len, uint32_t peer);

// traffic.c
int64_t mo_post(mo_qp *q, uintptr_t wrs, int n);
int mo_poll(mo_cq *c, int max);
int mo_pending(mo_qp *q);

#endif
