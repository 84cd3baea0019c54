/* What the front shares with the core: package internal/direct of Go, which describes it. A
 * test compares the two. */
#ifndef MUSTER_DIRECT_H
#define MUSTER_DIRECT_H

#include <stdint.h>

/* A cell of a ring and the words of its consumer: rdma/shm, layout_unsafe.go. */
struct ring_cell {
	uint64_t tag; /* lap, kind, length */
	uint64_t data[7];
};

struct ring_head {
	uint64_t cells;
	uint64_t bytes;
	uint64_t wanted;
};

struct muster_engine {
	uint64_t *bias;
	uint64_t *inside;
	uint64_t *driver;
	uint64_t *failed;
	int64_t *blocked;
	int64_t *connecting;
	int64_t *operations;
	int64_t *free_operations;
	int64_t *unexpected;
	uint64_t *sizes;
	uint64_t *sent;
	uint64_t *came;
	uint8_t *closed;
	uint32_t *unfenced;
};

struct muster_peer {
	uint32_t *send_seq;
	uint32_t *recv_seq;
	int64_t *credit;
	int64_t *consumed;
	int64_t *granted;
	int64_t *one_max;
	uint8_t *open;
	int64_t *wait;
	int64_t *held;
	uint64_t **recent;
	uint64_t *sent;
	uint64_t *received;
	uint64_t *bytes_sent;
	uint64_t *bytes_received;
	uint64_t *eager;
	uint8_t *gone;
	uint8_t *fenced;
	uint32_t *sleeper;
	struct ring_cell *out_cells;
	uint64_t out_cell_count;
	uint8_t *out_bytes;
	uint64_t out_byte_count;
	uint64_t *out_pos;
	uint64_t *out_at;
	uint64_t *out_cells_seen;
	uint64_t *out_bytes_seen;
	struct ring_head *out_head;
	uint64_t out_shift;
	uint64_t *out_came;
	int64_t *out_streak;
	struct ring_cell *in_cells;
	uint64_t in_cell_count;
	uint8_t *in_bytes;
	uint64_t in_byte_count;
	struct ring_cell **in_cell;
	uint32_t *in_lap;
	uint64_t *in_pos;
	uint64_t *in_at;
	uint64_t *in_publish_cells;
	uint64_t *in_publish_bytes;
	struct ring_head *in_head;
	uint64_t in_shift;
	uint64_t *in_sent;
	int64_t *in_streak;
	int64_t *in_pause;
	uint64_t *in_asked;
	uint8_t *in_late;
};

struct muster_comm {
	int32_t handle;
	uint32_t context;
	int32_t rank;
	int32_t size;
	int32_t *ranks;
};

struct muster_receive {
	uint64_t buf;
	uint64_t room;
	uint64_t got;
	uint32_t context;
	int32_t source;
	int32_t tag;
	int32_t state;
	int32_t got_source;
	int32_t got_tag;
	int32_t peer;
	int32_t comm;
};

enum { MAX_COMMS = 256, MAX_PEERS = 256, MAX_QUEUE = 256, MAX_RECEIVES = 1024, MAX_TYPES = 256 };

struct muster_front {
	int64_t spin;
	struct muster_engine engine;
	uint64_t first;
	uint64_t last;
	struct muster_receive *queue[MAX_QUEUE];
	uint32_t types[MAX_TYPES];
	struct muster_comm comms[MAX_COMMS];
	struct muster_peer peers[MAX_PEERS];
	struct muster_receive receives[MAX_RECEIVES];
};

enum { RECEIVE_FREE, RECEIVE_PENDING, RECEIVE_DONE, RECEIVE_IN_CORE };

#pragma GCC visibility push(hidden)

extern struct muster_front muster_front;

/* Each returns 1 if it has done the call, 0 if the core has to. */
int muster_direct_send(const void *buf, int64_t count, int datatype, int dest, int tag, int comm);
int muster_direct_isend(const void *buf, int64_t count, int datatype, int dest, int tag, int comm, int *request);
int muster_direct_recv(void *buf, int64_t count, int datatype, int source, int tag, int comm, void *status);
int muster_direct_irecv(void *buf, int64_t count, int datatype, int source, int tag, int comm, int *request);
int muster_direct_wait(int *request, void *status);
int muster_direct_waitall(int count, int *requests, void *statuses);
int muster_direct_test(int *request, int *flag, void *status);
int muster_direct_comm_rank(int comm, int *rank);
int muster_direct_comm_size(int comm, int *size);
int muster_direct_get_count(void *status, int datatype, int *count);


/* Ends the direct path in a child of fork. */
void muster_direct_close(void);

#pragma GCC visibility pop

#endif
