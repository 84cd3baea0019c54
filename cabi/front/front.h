/* The C front of a library; see package cabi. ABI_HEADER is the header that gen has made for
 * the ABI. */
#ifndef MUSTER_FRONT_H
#define MUSTER_FRONT_H

/* FUNCTION defines PMPI_X and the weak symbol MPI_X, which a profiling library may replace
 * (MPI-4.1 section 15.2). */
#define FUNCTION(name, params)                                                                     \
	int name params __attribute__((weak, alias("P" #name)));                                   \
	int P##name params

#include ABI_HEADER
#include "direct_gen.h"

/* What an error of a call leads to: see package core, errors.go. */
struct muster_outcome {
	int32_t action;
	int32_t status;	  /* of the process, if the error is fatal */
	uint64_t handler; /* a function of the program: void (*)(handle *, int *, ...) */
	int32_t handle;	  /* its first argument, a communicator or window */
	int32_t wide;	  /* the first argument is a pointer, object */
	uint64_t object;
	int32_t result;	  /* of the call, if it returns */
	int32_t pad;
	uint64_t extra;	  /* its fourth argument, after text */
	uint64_t site;	  /* where the program called: set by the front, for profiles */
	char text[1024];
};

/* The names of the functions of the table, each with a terminating 0. */
extern __attribute__((visibility("hidden"))) const char muster_function_names[];

/* The predefined handles, if handles are pointers. */
struct muster_predefined {
	uint64_t word;
	int32_t number;	 /* in the core */
	int32_t fortran; /* in Fortran, or -1 */
	const char *kind;
};
extern __attribute__((visibility("hidden"))) const struct muster_predefined muster_predefined[];
extern __attribute__((visibility("hidden"))) const int muster_predefined_count;

/* Calls function number id of the core for the function that contains the call, which the
 * program has called from site. */
#define muster_call(id, args) muster_call_from(id, args, __builtin_return_address(0))
__attribute__((visibility("hidden"))) int muster_call_from(int id, uint64_t *args, void *site);

#endif
