//go:build ofi && cgo && linux

// libfabric's offers: fi_getinfo for one kind of endpoint, and its result in a form that Go
// can read.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

// mo_offers_get requests endpoints of a transport. delivery requests only those whose writes
// can complete when the data has arrived.
int mo_offers_get(mo_library *l, const char *provider, int transport, int delivery, mo_offers **out)
{
	struct fi_info *hints = l->dupinfo(NULL);
	mo_offers *o = calloc(1, sizeof *o);
	if (!hints || !o) {
		free(o);
		return MO_NO_MEMORY;
	}
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	switch (transport) {
	case MO_RC:
		hints->ep_attr->type = FI_EP_MSG;
		break;
	case MO_RD:
		hints->ep_attr->type = FI_EP_RDM;
		break;
	default:
		hints->ep_attr->type = FI_EP_DGRAM;
	}
	hints->caps = FI_MSG;
	if (transport != MO_UD) {
		hints->caps |= FI_RMA;
		hints->tx_attr->msg_order = FI_ORDER_SAS;
		hints->rx_attr->msg_order = FI_ORDER_SAS;
		hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	}
	if (delivery)
		hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT;
	// Calls on one device are serialized, and every one of them makes progress: neither locks
	// nor threads of the provider are needed.
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	if (provider && *provider)
		hints->fabric_attr->prov_name = strdup(provider);

	struct mo_handlers before;
	mo_handlers_save(&before);
	uint32_t version = l->version();
	int rc = l->getinfo(FI_VERSION_LT(version, MO_API) ? version : MO_API, NULL, NULL, 0, hints, &o->list);
	mo_handlers_restore(&before);
	l->freeinfo(hints);
	if (rc && rc != -FI_ENODATA) {
		free(o);
		return rc;
	}
	o->lib = l;
	for (struct fi_info *i = o->list; i; i = i->next)
		o->count++;
	*out = o;
	return MO_OK;
}

int mo_offers_count(mo_offers *o) { return o->count; }

static void text(char *to, size_t room, const char *from) { snprintf(to, room, "%s", from ? from : ""); }

static void address(mo_limits *out, const struct fi_info *i)
{
	const struct sockaddr *sa = i->src_addr;
	char host[INET6_ADDRSTRLEN] = "";
	if (!sa || i->src_addrlen < sizeof(struct sockaddr_in))
		return;
	if (i->addr_format == FI_SOCKADDR_IN || (i->addr_format == FI_SOCKADDR && sa->sa_family == AF_INET)) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, host, sizeof host);
		out->family = 4;
	} else if (i->src_addrlen >= sizeof(struct sockaddr_in6) &&
		   (i->addr_format == FI_SOCKADDR_IN6 || (i->addr_format == FI_SOCKADDR && sa->sa_family == AF_INET6))) {
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)sa)->sin6_addr, host, sizeof host);
		out->family = 6;
	} else if (i->addr_format == FI_ADDR_STR) {
		text(out->address, sizeof out->address, (const char *)sa);
		return;
	}
	text(out->address, sizeof out->address, host);
}

void mo_offers_describe(mo_offers *o, int n, mo_limits *out)
{
	struct fi_info *i = o->list;
	while (n-- > 0)
		i = i->next;
	memset(out, 0, sizeof *out);
	text(out->provider, sizeof out->provider, i->fabric_attr->prov_name);
	text(out->fabric, sizeof out->fabric, i->fabric_attr->name);
	text(out->domain, sizeof out->domain, i->domain_attr->name);
	address(out, i);
	switch (i->ep_attr->type) {
	case FI_EP_MSG:
		out->endpoint = MO_RC;
		break;
	case FI_EP_RDM:
		out->endpoint = MO_RD;
		break;
	default:
		out->endpoint = MO_UD;
	}
	if (i->nic && i->nic->link_attr)
		out->speed = i->nic->link_attr->speed;
	out->max_msg = i->ep_attr->max_msg_size;
	out->mr_mode = (uint64_t)i->domain_attr->mr_mode;
	out->key_size = i->domain_attr->mr_key_size;
	out->rx_size = i->rx_attr->size;
	out->prefix = (i->mode & FI_MSG_PREFIX) != 0;
}

void mo_offers_free(mo_offers *o)
{
	if (o->list)
		o->lib->freeinfo(o->list);
	free(o);
}
