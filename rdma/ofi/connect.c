//go:build ofi && cgo && linux

// Connected queue pairs. Each listens at a passive endpoint, whose name is its address. Of two
// that connect to each other one sends a connection request, the other waits for it; the Go
// side decides which. A request identifies its sender, so that foreign connections and other
// jobs are rejected. mo_connect is called repeatedly until it succeeds: nothing here blocks.

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "inside.h"

// mo_call is the private data of a connection request.
struct mo_call {
	struct mo_header header;
	uint32_t to;
	uint32_t zero;
};

// mo_listen creates the passive endpoint of a new queue pair.
int mo_listen(mo_qp *q)
{
	mo_device *d = q->dev;
	struct fi_eq_attr attr = {.size = 16, .wait_obj = FI_WAIT_NONE};
	int rc = fi_eq_open(d->fabric, &attr, &q->eq, NULL);
	if (!rc)
		rc = fi_passive_ep(d->fabric, d->info, &q->pep, NULL);
	if (!rc)
		rc = fi_pep_bind(q->pep, &q->eq->fid, 0);
	if (!rc)
		rc = fi_listen(q->pep);
	return rc;
}

// engage creates the endpoint, from the device's own description or that of a request.
static int engage(mo_qp *q, struct fi_info *info)
{
	int rc = fi_endpoint(q->dev->domain, info, &q->ep, NULL);
	if (!rc)
		rc = fi_ep_bind(q->ep, &q->eq->fid, 0);
	return rc ? rc : mo_enable(q);
}

static int call(mo_qp *q, const void *name, size_t len, uint32_t peer)
{
	struct mo_call c = {.header = q->dev->header, .to = peer};
	struct fi_info *info = q->dev->lib->dupinfo(q->dev->info);
	if (!info)
		return MO_NO_MEMORY;
	free(info->dest_addr);
	info->dest_addr = malloc(len);
	info->dest_addrlen = len;
	int rc = MO_NO_MEMORY;
	if (info->dest_addr) {
		memcpy(info->dest_addr, name, len);
		rc = engage(q, info);
	}
	q->dev->lib->freeinfo(info);
	return rc ? rc : fi_connect(q->ep, name, &c, sizeof c);
}

// answer accepts a request of the expected peer, and rejects others.
static int answer(mo_qp *q, struct fi_eq_cm_entry *e, size_t len, uint32_t peer)
{
	struct mo_call c = {0};
	struct mo_header want = q->dev->header;
	want.from = peer;
	if (len >= sizeof *e + sizeof c)
		memcpy(&c, e->data, sizeof c);
	int rc = MO_OK;
	if (q->ep || memcmp(&c.header, &want, sizeof want) || c.to != q->dev->header.from) {
		fi_reject(q->pep, e->info->handle, NULL, 0);
		atomic_fetch_add(&q->dev->dropped, 1);
	} else if (!(rc = engage(q, e->info))) {
		rc = fi_accept(q->ep, NULL, 0);
	}
	q->dev->lib->freeinfo(e->info);
	return rc;
}

// mo_connect takes a step towards a connection with a peer. MO_AGAIN requests another call.
int mo_connect(mo_qp *q, int active, const void *name, size_t len, uint32_t peer)
{
	struct {
		struct fi_eq_cm_entry entry;
		uint8_t data[256];
	} e;
	uint32_t event = 0;
	int rc = MO_AGAIN;
	mo_lock(q->dev);
	if (q->connected) {
		rc = MO_OK;
	} else if (active && !q->ep) {
		rc = call(q, name, len, peer);
		if (rc == MO_OK)
			rc = MO_AGAIN;
	} else {
		ssize_t n = fi_eq_read(q->eq, &event, &e, sizeof e, 0);
		if (n == -FI_EAVAIL) {
			struct fi_eq_err_entry err = {0};
			fi_eq_readerr(q->eq, &err, 0);
			rc = err.err ? -err.err : -FI_ECONNREFUSED;
		} else if (n > 0 && event == FI_CONNREQ) {
			rc = answer(q, &e.entry, (size_t)n, peer);
			if (rc == MO_OK)
				rc = MO_AGAIN;
		} else if (n > 0 && event == FI_CONNECTED) {
			q->connected = 1;
			q->other_index = peer;
			rc = MO_OK;
		} else if (n > 0 && event == FI_SHUTDOWN) {
			rc = -FI_ECONNRESET;
		} else if (n < 0 && n != -FI_EAGAIN) {
			rc = (int)n;
		}
	}
	mo_unlock(q->dev);
	return rc;
}
