//go:build (pmix || cabi) && cgo && linux

// What the session needs of the binary interface of libpmix.so.2, which is the same in PMIx 2 to
// 5 (PMIx standard, chapter 3), so that no headers of PMIx are needed to build. abi_test.go compares
// it with those that are installed.

#ifndef MUSTER_PMIX_ABI_H
#define MUSTER_PMIX_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int pmix_status_t;

enum {
	PMIX_SUCCESS = 0,
	PMIX_ERR_TYPE_MISMATCH = -18,
	PMIX_ERR_TIMEOUT = -24,
	PMIX_ERR_NOT_FOUND = -46,
};

// Types of values.
enum {
	PMIX_BOOL = 1,
	PMIX_STRING = 3,
	PMIX_SIZE = 4,
	PMIX_INT = 6,
	PMIX_UINT16 = 13,
	PMIX_UINT32 = 14,
	PMIX_UINT64 = 15,
	PMIX_BYTE_OBJECT = 27,
	PMIX_PROC_RANK = 40,
};

typedef uint8_t pmix_scope_t;
enum { PMIX_GLOBAL = 3 };

#define PMIX_TIMEOUT  "pmix.timeout"
#define PMIX_OPTIONAL "pmix.optional"

typedef struct {
	char nspace[256];
	uint32_t rank;
} pmix_proc_t;

typedef struct {
	uint16_t type;
	union {
		bool flag;
		char *string;
		size_t size;
		int integer;
		uint16_t uint16;
		uint32_t uint32;
		uint64_t uint64;
		uint32_t rank;
		struct { char *bytes; size_t size; } bo;
		struct { char *name, *value; char separator; } envar; // the longest
	} data;
} pmix_value_t;

typedef struct {
	char key[512];
	uint32_t flags;
	pmix_value_t value;
} pmix_info_t;

#endif
