//go:build pmix && cgo && linux

// What Go sees of libpmix. The functions of the library are found at run time
// and kept in a session; a call here is one call there.

#ifndef MUSTER_PMIX_SHIM_H
#define MUSTER_PMIX_SHIM_H

#include <pmix.h>
#include <stddef.h>
#include <stdint.h>

typedef struct muster_pmix muster_pmix;

// muster_pmix_open loads the library and connects to the server. On failure it
// gives NULL, and a reason that the caller frees.
muster_pmix *muster_pmix_open(char **why);

const char *muster_pmix_namespace(const muster_pmix *s);
uint32_t muster_pmix_rank(const muster_pmix *s);
const char *muster_pmix_error(const muster_pmix *s, int status);

int muster_pmix_put(muster_pmix *s, const char *key, void *bytes, size_t len);
int muster_pmix_fence(muster_pmix *s, int seconds);
// muster_pmix_get gives bytes that the caller frees.
int muster_pmix_get(muster_pmix *s, uint32_t rank, const char *key, int seconds, void **bytes, size_t *len);
// The next two look for what the launcher says of a rank, or of the job, and
// wait for nothing.
int muster_pmix_number(muster_pmix *s, uint32_t rank, const char *key, uint64_t *number);
int muster_pmix_text(muster_pmix *s, uint32_t rank, const char *key, char **text);
int muster_pmix_abort(muster_pmix *s, int code, const char *why);
int muster_pmix_close(muster_pmix *s);

#endif
