//go:build ofi && cgo && linux

// A device: fabric, domain and address table, and the memory registered with it.

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inside.h"

int mo_device_open(mo_library *l, mo_offers *o, int n, const mo_setup *s, mo_device **out)
{
	struct fi_info *i = o->list;
	while (n-- > 0)
		i = i->next;
	mo_device *d = calloc(1, sizeof *d);
	if (!d || !(d->info = l->dupinfo(i))) {
		free(d);
		return MO_NO_MEMORY;
	}
	d->lib = l;
	d->setup = *s;
	d->info->tx_attr->op_flags = 0; // only writes wait for the peer's ack
	d->mr_mode = (uint64_t)i->domain_attr->mr_mode;
	d->iov = i->tx_attr->iov_limit;
	d->max_msg = i->ep_attr->max_msg_size;
	if (s->part && s->part < d->max_msg)
		d->max_msg = s->part;
	d->transport = i->ep_attr->type == FI_EP_MSG ? MO_RC : i->ep_attr->type == FI_EP_RDM ? MO_RD : MO_UD;
	d->header = (struct mo_header){.job = s->job, .from = s->index, .size = (uint16_t)MO_HEADER, .check = MO_CHECK};
	d->own_keys = s->job ^ 0x9e3779b97f4a7c15u;

	struct mo_handlers before;
	mo_handlers_save(&before);
	int rc = l->fabric(d->info->fabric_attr, &d->fabric, NULL);
	if (!rc)
		rc = fi_domain(d->fabric, d->info, &d->domain, NULL);
	if (!rc && d->transport != MO_RC) {
		struct fi_av_attr av = {.type = i->domain_attr->av_type, .count = s->peers ? s->peers : 16};
		if (av.type == FI_AV_UNSPEC)
			av.type = FI_AV_MAP;
		rc = fi_av_open(d->domain, &av, &d->av, NULL);
	}
	mo_handlers_restore(&before);
	if (rc) {
		mo_device_close(d);
		return rc;
	}
	*out = d;
	return MO_OK;
}

// mo_device_close requires that everything made with the device is closed.
void mo_device_close(mo_device *d)
{
	mo_blocks_free(d->blocks);
	if (d->av)
		fi_close(&d->av->fid);
	if (d->domain)
		fi_close(&d->domain->fid);
	if (d->fabric)
		fi_close(&d->fabric->fid);
	for (int i = 0; i < MO_PAGES; i++) {
		for (int k = 0; d->peers[i] && k < MO_PAGE; k++) {
			if (d->peers[i][k] && d->peers[i][k]->probe)
				close(d->peers[i][k]->probe - 1);
			free(d->peers[i][k]);
		}
		free(d->peers[i]);
	}
	free(d->ops);
	for (struct mo_big *b = d->bigs, *next; b; b = next) {
		next = b->all;
		free(b);
	}
	free(d->lkeys);
	d->lib->freeinfo(d->info);
	free(d);
}

uint64_t mo_device_dropped(mo_device *d) { return atomic_load(&d->dropped); }

// mo_resolve adds a peer's name to the address table.
int mo_resolve(mo_device *d, uint32_t peer, const void *name, size_t len)
{
	char copy[MO_NAME_MAX] = {0}; // providers read the full length of their addresses
	if (peer / MO_PAGE >= MO_PAGES || len > sizeof copy)
		return MO_UNKNOWN_PEER;
	memcpy(copy, name, len);
	mo_lock(d);
	struct mo_peer ***page = &d->peers[peer / MO_PAGE], *p = calloc(1, sizeof *p);
	if (!*page)
		*page = calloc(MO_PAGE, sizeof **page);
	int rc = MO_NO_MEMORY;
	if (*page && p) {
		int k = fi_av_insert(d->av, copy, 1, &p->addr, 0, NULL);
		rc = k == 1 ? MO_OK : k < 0 ? k : -FI_EADDRNOTAVAIL;
	}
	if (rc == MO_OK) {
		memcpy(&p->name, copy, sizeof copy < sizeof p->name ? sizeof copy : sizeof p->name);
		(*page)[peer % MO_PAGE] = p;
	} else {
		free(p);
	}
	mo_unlock(d);
	return rc;
}

// attach makes a registration valid where the provider binds them to endpoints.
static int attach(mo_device *d, struct fid_mr *mr)
{
	if (!(d->mr_mode & FI_MR_ENDPOINT))
		return 0;
	if (!d->bound)
		return -FI_ENOTCONN;
	int rc = fi_mr_bind(mr, &d->bound->ep->fid, 0);
	return rc ? rc : fi_mr_enable(mr);
}

int mo_register(mo_device *d, uintptr_t mem, size_t len, int access, uint64_t key, mo_region **out, uint64_t *gotkey, uint64_t *base)
{
	mo_region *r = malloc(sizeof *r);
	if (!r)
		return MO_NO_MEMORY;
	// FI_SEND and FI_RECV only where sends need them: ofi_rxm lets peers read whatever may be
	// sent.
	uint64_t rights = FI_READ | FI_WRITE;
	if (d->mr_mode & FI_MR_LOCAL)
		rights |= FI_SEND | FI_RECV;
	if (access & MO_REMOTE_READ)
		rights |= FI_REMOTE_READ;
	if (access & MO_REMOTE_WRITE)
		rights |= FI_REMOTE_WRITE;
	mo_lock(d);
	int rc = fi_mr_reg(d->domain, (void *)mem, len, rights, 0, key, 0, &r->mr, NULL);
	if (!rc && (rc = attach(d, r->mr)))
		fi_close(&r->mr->fid);
	mo_unlock(d);
	if (rc) {
		free(r);
		return rc;
	}
	*out = r;
	*gotkey = fi_mr_key(r->mr);
	*base = d->mr_mode & FI_MR_VIRT_ADDR ? mem : 0;
	return MO_OK;
}

int mo_deregister(mo_device *d, mo_region *r)
{
	mo_lock(d);
	int rc = fi_close(&r->mr->fid);
	mo_unlock(d);
	if (!rc)
		free(r);
	return rc;
}

// mo_set_lkey assigns the descriptor of a region to a key, or removes it.
int mo_set_lkey(mo_device *d, uint32_t lkey, mo_region *r)
{
	mo_lock(d);
	int rc = MO_OK;
	if (lkey >= d->lkey_count) {
		uint32_t count = lkey * 2 + 16;
		void **bigger = realloc(d->lkeys, count * sizeof *bigger);
		if (bigger) {
			memset(bigger + d->lkey_count, 0, (count - d->lkey_count) * sizeof *bigger);
			d->lkeys = bigger;
			d->lkey_count = count;
		} else {
			rc = MO_NO_MEMORY;
		}
	}
	if (!rc)
		d->lkeys[lkey] = r ? fi_mr_desc(r->mr) : NULL;
	mo_unlock(d);
	return rc;
}

// mo_block_new maps memory for this package's own buffers. Pages that are never written cost
// nothing, unless the provider pins them.
int mo_block_new(mo_device *d, struct mo_block **list, size_t len, struct mo_block **out)
{
	struct mo_block *b = calloc(1, sizeof *b);
	if (!b)
		return MO_NO_MEMORY;
	b->len = len;
	b->mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->mem == MAP_FAILED) {
		free(b);
		return MO_NO_MEMORY;
	}
	if (d->mr_mode & FI_MR_LOCAL) {
		int rc = fi_mr_reg(d->domain, b->mem, len, FI_SEND | FI_RECV, 0, d->own_keys++, 0, &b->mr, NULL);
		if (!rc && (rc = attach(d, b->mr)))
			fi_close(&b->mr->fid);
		if (rc) {
			munmap(b->mem, len);
			free(b);
			return rc;
		}
	}
	b->next = *list;
	*list = b;
	*out = b;
	return MO_OK;
}

void mo_blocks_free(struct mo_block *b)
{
	while (b) {
		struct mo_block *next = b->next;
		if (b->mr)
			fi_close(&b->mr->fid);
		munmap(b->mem, b->len);
		free(b);
		b = next;
	}
}
