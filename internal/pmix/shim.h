//go:build (pmix || cabi) && cgo && linux

// The interface of libpmix for Go. A session holds the functions of the library, which are
// looked up at run time; each function here is one library call.

#ifndef MUSTER_PMIX_SHIM_H
#define MUSTER_PMIX_SHIM_H

#include "abi.h"

typedef struct muster_pmix muster_pmix;

// muster_pmix_open loads the library and connects to the server. On failure it returns
// NULL and a reason that the caller frees.
muster_pmix *muster_pmix_open(char **why);

const char *muster_pmix_namespace(const muster_pmix *s);
uint32_t muster_pmix_rank(const muster_pmix *s);
const char *muster_pmix_error(const muster_pmix *s, int status);

int muster_pmix_put(muster_pmix *s, const char *key, void *bytes, size_t len);
int muster_pmix_fence(muster_pmix *s, int seconds);
// muster_pmix_get returns bytes that the caller frees.
int muster_pmix_get(muster_pmix *s, uint32_t rank, const char *key, int seconds, void **bytes, size_t *len);
// The next two return attributes of a rank or of the job and do not block.
int muster_pmix_number(muster_pmix *s, uint32_t rank, const char *key, uint64_t *number);
int muster_pmix_text(muster_pmix *s, uint32_t rank, const char *key, char **text);
int muster_pmix_abort(muster_pmix *s, int code, const char *why);
int muster_pmix_close(muster_pmix *s);

#endif
