/* The direct path of the front. What it shares with the core is in direct_gen.h. */
#ifndef MUSTER_DIRECT_H
#define MUSTER_DIRECT_H

#include ABI_HEADER
#include "direct_gen.h"

/* Machines on which the order of stores is that of the engine, and the front does without it. */
#if defined(__x86_64__) && defined(__linux__)
#define DIRECT_PATH 1
#endif

/* A cell of a ring and the words of its consumer: rdma/shm, layout_unsafe.go. */
struct ring_cell {
	uint64_t tag; /* lap, kind, length */
	uint64_t data[7];
};

_Static_assert(sizeof(struct ring_cell) == sizeof(uint64_t) + INLINE, "a cell of rdma/shm");

struct ring_head {
	uint64_t cells;
	uint64_t bytes;
	uint64_t wanted;
};

#pragma GCC visibility push(hidden)

extern struct muster_front muster_front;

/* Each returns 1 if it has done the call, 0 if the core has to. */
int muster_direct_send(const void *buf, int64_t count, abi_handle datatype, int dest, int tag, abi_handle comm);
int muster_direct_isend(const void *buf, int64_t count, abi_handle datatype, int dest, int tag, abi_handle comm, abi_handle *request);
int muster_direct_recv(void *buf, int64_t count, abi_handle datatype, int source, int tag, abi_handle comm, void *status);
int muster_direct_irecv(void *buf, int64_t count, abi_handle datatype, int source, int tag, abi_handle comm, abi_handle *request);
int muster_direct_wait(abi_handle *request, void *status);
int muster_direct_waitall(int count, abi_handle *requests, void *statuses);
int muster_direct_test(abi_handle *request, int *flag, void *status);
int muster_direct_comm_rank(abi_handle comm, int *rank);
int muster_direct_comm_size(abi_handle comm, int *size);
int muster_direct_get_count(void *status, abi_handle datatype, int *count);

/* Ends the direct path in a child of fork. */
void muster_direct_close(void);

#pragma GCC visibility pop

#endif
