//go:build ofi && cgo && linux

// Loads libfabric at run time, so that a program starts where it is not installed. Libraries
// that come with it (libinfinipath, libpsm2) replace signal handlers when they are loaded or
// first used; a Go program needs its own, or a nil dereference kills it instead of causing a
// panic. So all handlers are saved before foreign code runs for the first time and restored
// after it.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

_Static_assert((int)MO_ERR_NOKEY == (int)FI_ENOKEY, "an error number that Go knows");

void mo_handlers_save(struct mo_handlers *h)
{
	for (int s = 1; s < NSIG; s++)
		h->known[s] = sigaction(s, NULL, &h->of[s]) == 0;
}

// Restores only changed handlers, so that a handler which the Go side installs concurrently
// is at risk for as short a time as possible.
void mo_handlers_restore(const struct mo_handlers *h)
{
	struct sigaction now;
	for (int s = 1; s < NSIG; s++) {
		if (!h->known[s] || sigaction(s, NULL, &now) != 0)
			continue;
		if (now.sa_sigaction != h->of[s].sa_sigaction || now.sa_flags != h->of[s].sa_flags)
			sigaction(s, &h->of[s], NULL);
	}
}

// mo_handlers_digest writes a digest of all signal handlers, for tests.
int mo_handlers_digest(uint8_t *out, int max)
{
	int n = 0;
	for (int s = 1; s < NSIG; s++) {
		struct sigaction now;
		memset(&now, 0, sizeof now);
		sigaction(s, NULL, &now);
		if (n + 12 > max)
			break;
		memcpy(out + n, &now.sa_sigaction, 8);
		memcpy(out + n + 8, &now.sa_flags, 4);
		n += 12;
	}
	return n;
}

// settle chooses settings of libfabric, unless the user has, before it reads them.
static void settle(uint32_t peers)
{
	// libfabric caches registrations itself, and intercepts libc's functions to notice when
	// memory is freed. Go does not call those: libfabric would go on using unmapped pages.
	setenv("FI_MR_CACHE_MAX_COUNT", "0", 0);
	// It creates completion queues for 256 peers, more than some adapters have room for.
	char count[16];
	snprintf(count, sizeof count, "%u", peers);
	if (peers > 0)
		setenv("FI_UNIVERSE_SIZE", count, 0);
}

// mo_library_open loads libfabric for the given number of peers, if that is known.
mo_library *mo_library_open(const char *name, uint32_t peers, char *why, size_t whylen)
{
	settle(peers);
	struct mo_handlers before;
	mo_handlers_save(&before);
	// It is never unloaded: providers have threads and exit handlers.
	void *h = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	mo_handlers_restore(&before);
	if (!h) {
		const char *e = dlerror();
		snprintf(why, whylen, "%s", e ? e : "dlopen failed");
		return NULL;
	}
	mo_spare_kernel_symbols(h);
	mo_library *l = calloc(1, sizeof *l);
	if (!l) {
		snprintf(why, whylen, "out of memory");
		return NULL;
	}
	struct {
		const char *symbol, *version;
		void **to;
	} needs[] = {
		{"fi_getinfo", "FABRIC_1.3", (void **)&l->getinfo},
		{"fi_freeinfo", "FABRIC_1.3", (void **)&l->freeinfo},
		{"fi_dupinfo", "FABRIC_1.3", (void **)&l->dupinfo},
		{"fi_fabric", "FABRIC_1.1", (void **)&l->fabric},
		{"fi_strerror", "FABRIC_1.0", (void **)&l->strerror},
		{"fi_version", "FABRIC_1.0", (void **)&l->version},
	};
	for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
		if (!(*needs[i].to = dlvsym(h, needs[i].symbol, needs[i].version))) {
			snprintf(why, whylen, "it lacks %s of version %s", needs[i].symbol, needs[i].version);
			free(l);
			return NULL;
		}
	}
	return l;
}

void mo_library_free(mo_library *l) { free(l); }

uint32_t mo_library_version(mo_library *l) { return l->version(); }

const char *mo_error(mo_library *l, int code)
{
	const char *s = l->strerror(code < 0 ? -code : code);
	return s ? s : "unknown error";
}
