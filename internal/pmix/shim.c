//go:build (pmix || cabi) && cgo && linux

#include "shim.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct muster_pmix {
	pmix_proc_t self;
	pmix_status_t (*init)(pmix_proc_t *, pmix_info_t[], size_t);
	pmix_status_t (*finalize)(const pmix_info_t[], size_t);
	pmix_status_t (*abort)(int, const char[], pmix_proc_t[], size_t);
	pmix_status_t (*put)(pmix_scope_t, const char[], pmix_value_t *);
	pmix_status_t (*commit)(void);
	pmix_status_t (*fence)(const pmix_proc_t[], size_t, const pmix_info_t[], size_t);
	pmix_status_t (*get)(const pmix_proc_t *, const char[], const pmix_info_t[], size_t, pmix_value_t **);
	const char *(*error_string)(pmix_status_t);
};

static void *fail(muster_pmix *s, char **why, const char *what, const char *detail)
{
	size_t len = strlen(what) + strlen(detail) + 3;
	*why = malloc(len);
	if (*why != NULL)
		snprintf(*why, len, "%s: %s", what, detail);
	free(s);
	return NULL;
}

muster_pmix *muster_pmix_open(char **why)
{
	muster_pmix *s = calloc(1, sizeof *s);
	if (s == NULL)
		return NULL;
	// Its plug-ins list it as a needed library, so RTLD_LOCAL is enough.
	void *lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL)
		return fail(s, why, "libpmix.so.2 cannot be opened", dlerror());
	const struct { const char *name; void **fn; } wanted[] = {
		{"PMIx_Init", (void **)&s->init},     {"PMIx_Finalize", (void **)&s->finalize},
		{"PMIx_Abort", (void **)&s->abort},   {"PMIx_Put", (void **)&s->put},
		{"PMIx_Commit", (void **)&s->commit}, {"PMIx_Fence", (void **)&s->fence},
		{"PMIx_Get", (void **)&s->get},       {"PMIx_Error_string", (void **)&s->error_string},
	};
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if ((*wanted[i].fn = dlsym(lib, wanted[i].name)) == NULL)
			return fail(s, why, "libpmix.so.2 lacks a function", wanted[i].name);
	pmix_status_t rc = s->init(&s->self, NULL, 0);
	if (rc != PMIX_SUCCESS)
		return fail(s, why, "PMIx_Init", s->error_string(rc));
	return s;
}

const char *muster_pmix_namespace(const muster_pmix *s) { return s->self.nspace; }
uint32_t muster_pmix_rank(const muster_pmix *s) { return s->self.rank; }
const char *muster_pmix_error(const muster_pmix *s, int status) { return s->error_string(status); }

int muster_pmix_put(muster_pmix *s, const char *key, void *bytes, size_t len)
{
	pmix_value_t v = {.type = PMIX_BYTE_OBJECT};
	v.data.bo.bytes = bytes;
	v.data.bo.size = len;
	pmix_status_t rc = s->put(PMIX_GLOBAL, key, &v);
	if (rc != PMIX_SUCCESS)
		return rc;
	return s->commit();
}

static pmix_info_t limit(int seconds)
{
	pmix_info_t i = {.flags = 0};
	strcpy(i.key, PMIX_TIMEOUT);
	i.value.type = PMIX_INT;
	i.value.data.integer = seconds;
	return i;
}

// The fence collects no data: a value is fetched when a rank requests it.
int muster_pmix_fence(muster_pmix *s, int seconds)
{
	pmix_info_t info = limit(seconds);
	return s->fence(NULL, 0, &info, seconds > 0 ? 1 : 0);
}

static pmix_proc_t whom(const muster_pmix *s, uint32_t rank)
{
	pmix_proc_t p = s->self;
	p.rank = rank;
	return p;
}

// The library allocates a value and the data it points to.
static void release(pmix_value_t *v)
{
	if (v == NULL)
		return;
	if (v->type == PMIX_STRING)
		free(v->data.string);
	else if (v->type == PMIX_BYTE_OBJECT)
		free(v->data.bo.bytes);
	free(v);
}

int muster_pmix_get(muster_pmix *s, uint32_t rank, const char *key, int seconds, void **bytes, size_t *len)
{
	pmix_proc_t p = whom(s, rank);
	pmix_info_t info = limit(seconds);
	pmix_value_t *v = NULL;
	pmix_status_t rc = s->get(&p, key, &info, 1, &v);
	if (rc == PMIX_SUCCESS && (v == NULL || v->type != PMIX_BYTE_OBJECT))
		rc = PMIX_ERR_TYPE_MISMATCH;
	if (rc == PMIX_SUCCESS) {
		*bytes = v->data.bo.bytes;
		*len = v->data.bo.size;
		v->data.bo.bytes = NULL;
	}
	release(v);
	return rc;
}

static int look(muster_pmix *s, uint32_t rank, const char *key, pmix_value_t **v)
{
	pmix_proc_t p = whom(s, rank);
	pmix_info_t info = {.flags = 0};
	strcpy(info.key, PMIX_OPTIONAL);
	info.value.type = PMIX_BOOL;
	info.value.data.flag = true;
	pmix_status_t rc = s->get(&p, key, &info, 1, v);
	return rc == PMIX_SUCCESS && *v == NULL ? PMIX_ERR_NOT_FOUND : rc;
}

int muster_pmix_number(muster_pmix *s, uint32_t rank, const char *key, uint64_t *number)
{
	pmix_value_t *v = NULL;
	int rc = look(s, rank, key, &v);
	if (rc != PMIX_SUCCESS)
		return rc;
	switch (v->type) {
	case PMIX_UINT16: *number = v->data.uint16; break;
	case PMIX_UINT32: *number = v->data.uint32; break;
	case PMIX_UINT64: *number = v->data.uint64; break;
	case PMIX_PROC_RANK: *number = v->data.rank; break;
	case PMIX_SIZE: *number = v->data.size; break;
	default: rc = PMIX_ERR_TYPE_MISMATCH;
	}
	release(v);
	return rc;
}

int muster_pmix_text(muster_pmix *s, uint32_t rank, const char *key, char **text)
{
	pmix_value_t *v = NULL;
	int rc = look(s, rank, key, &v);
	if (rc != PMIX_SUCCESS)
		return rc;
	if (v->type == PMIX_STRING) {
		*text = v->data.string;
		v->data.string = NULL;
	} else {
		rc = PMIX_ERR_TYPE_MISMATCH;
	}
	release(v);
	return rc;
}

int muster_pmix_abort(muster_pmix *s, int code, const char *why)
{
	return s->abort(code, why, NULL, 0);
}

// The library stays loaded, because its threads may still be exiting.
int muster_pmix_close(muster_pmix *s)
{
	int rc = s->finalize(NULL, 0);
	free(s);
	return rc;
}
