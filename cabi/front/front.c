/* The part of the front that is written by hand: it loads the core, calls error handlers
 * after the core has returned (they may longjmp, or raise an exception of C++), and has the
 * few functions that need no core. */

#define _GNU_SOURCE
#include "front.h"
#include "direct.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
	int (*call)(int, uint64_t *, struct muster_outcome *);
	void (*abort)(int, const char *);
} core;

static int initialized, finalized;

/* The core sets leave_at_exit when the last session has ended: another may follow, so the
 * process is in its job until it exits. */
static int leave_at_exit;

/* The core sets errors_return if errors of calls without an object return. */
static int errors_return;

/* give_signal_stack gives the thread an alternate signal stack if it has none. The runtime of Go uses the one that the
 * thread has in MPI_Init, and ends the program at a signal that finds none later. A program may have removed it:
 * faulthandler of Python does so when the interpreter ends, before mpi4py calls MPI_Finalize. The stack stays, because
 * signals may come until the end. */
static void give_signal_stack(void)
{
	static char memory[1 << 16];
	stack_t stack;

	if (sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_DISABLE) != 0) {
		stack = (stack_t){.ss_sp = memory, .ss_size = sizeof memory};
		sigaltstack(&stack, NULL);
	}
}

static void leave(void)
{
	if (leave_at_exit) {
		uint64_t a[] = {0};
		give_signal_stack();
		muster_call(CORE_EXIT, a);
	}
}

/* function_name returns the name of function number id of the core. */
static const char *function_name(int id)
{
	const char *name = muster_function_names;

	if (id == CORE_INIT)
		return "MPI_Init";
	if (id == CORE_FINALIZE)
		return "MPI_Finalize";
	while (id-- > 0)
		name += strlen(name) + 1;
	return name;
}

/* A child of fork has no Go runtime to call: its threads are in the parent. Nor may it use
 * the rings and connections, which are those of the parent. */
static int call_in_child(int id, uint64_t *args, struct muster_outcome *out)
{
	const char *name;
	int aborts;

	if (id == CORE_SHARE)
		args[0] = args[2] = 0; /* nothing is shared */
	if (id < CORE_FINALIZE)
		return 0;
	name = function_name(id);
	aborts = strcmp(name, "MPI_Abort") == 0;
	out->action = errors_return && !aborts ? OUTCOME_RETURN : OUTCOME_FATAL;
	out->status = aborts ? (int32_t)args[1] : ERR_OTHER;
	out->result = ERR_OTHER;
	snprintf(out->text, sizeof out->text, "%s called in a child process of fork; only the process that called MPI_Init may call MPI", name);
	return ERR_OTHER;
}

static void abort_in_child(int status, const char *text)
{
	(void)text;
	_exit(status);
}

/* after_fork runs in the child. */
static void after_fork(void)
{
	leave_at_exit = 0;
	core.call = call_in_child;
	core.abort = abort_in_child;
	muster_direct_close();
}

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

/* load opens libmuster_core.so, which is in the folder of this library. */
static void load(void)
{
	Dl_info self;
	char path[PATH_MAX], folder[PATH_MAX];
	void *lib;
	int (*call)(int, uint64_t *, struct muster_outcome *);
	uint64_t addresses[] = {UNWEIGHTED, WEIGHTS_EMPTY, (uintptr_t)&leave_at_exit, (uintptr_t)&muster_front, (uintptr_t)&errors_return,
				(uintptr_t)ABI, (uintptr_t)muster_predefined, (uint64_t)muster_predefined_count, HANDLE_SHIFT};
	struct muster_outcome out;

	pthread_mutex_lock(&loading);
	if (core.call == NULL) {
		if (!dladdr((void *)muster_call_from, &self) || realpath(self.dli_fname, folder) == NULL ||
		    snprintf(path, sizeof path, "%s/libmuster_core.so", dirname(folder)) >= (int)sizeof path) {
			fprintf(stderr, "muster: cannot find the folder of " LIBRARY "\n");
			abort();
		}
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		if (lib == NULL) {
			fprintf(stderr, "muster: %s\nmuster: libmuster_core.so must be beside " LIBRARY "; \"make cabi\" builds both\n", dlerror());
			abort();
		}
		atexit(leave);
		core.abort = (void (*)(int, const char *))dlsym(lib, "muster_core_abort");
		call = (int (*)(int, uint64_t *, struct muster_outcome *))dlsym(lib, "muster_core_call");
		if (call(CORE_LOAD, addresses, &out) != 0) {
			fprintf(stderr, "muster: %s\n", out.text);
			abort();
		}
		pthread_atfork(NULL, NULL, after_fork);
		__atomic_store_n(&core.call, call, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&loading);
}

/* failed does what the error handler of a call says. */
static int failed(struct muster_outcome *out, int code)
{
	switch (out->action) {
	case OUTCOME_FATAL:
		fflush(NULL);
		fprintf(stderr, "muster: %s\n", out->text);
		core.abort(out->status, out->text);
		_exit(1);
	case OUTCOME_HANDLER:
		if (out->wide) {
			void *object = (void *)(uintptr_t)out->object;
			((void (*)(void **, int *, ...))(uintptr_t)out->handler)(&object, &code, out->text, out->extra);
		} else {
			int handle = out->handle;
			((void (*)(int *, int *, ...))(uintptr_t)out->handler)(&handle, &code);
		}
		if (code == 0) /* the handler has dealt with the error, as in MPICH */
			return 0;
	}
	return out->result;
}

int muster_call_from(int id, uint64_t *args, void *site)
{
	struct muster_outcome out;
	int code;

	out.site = (uintptr_t)site;
	if (__builtin_expect(core.call == NULL, 0))
		load();
	code = core.call(id, args, &out);
	if (__builtin_expect(code != 0, 0))
		return failed(&out, code);
	return 0;
}

FUNCTION(MPI_Init_thread, (int *argc, char ***argv, int required, int *provided))
{
	uint64_t a[] = {(uint64_t)required, (uintptr_t)provided};
	int code;

	(void)argc, (void)argv;
	code = muster_call(CORE_INIT, a);
	if (code == 0)
		initialized = 1;
	return code;
}

FUNCTION(MPI_Init, (int *argc, char ***argv))
{
	return PMPI_Init_thread(argc, argv, THREAD_SINGLE, NULL);
}

FUNCTION(MPI_Finalize, (void))
{
	uint64_t a[] = {0};
	int code;

	give_signal_stack();
	code = muster_call(CORE_FINALIZE, a);
	if (code == 0)
		finalized = 1;
	return code;
}

FUNCTION(MPI_Initialized, (int *flag))
{
	*flag = initialized;
	return 0;
}

FUNCTION(MPI_Finalized, (int *flag))
{
	*flag = finalized;
	return 0;
}

/* The version of the standard for which programs were built. */
FUNCTION(MPI_Get_version, (int *version, int *subversion))
{
	*version = STANDARD;
	*subversion = SUBSTANDARD;
	return 0;
}

FUNCTION(MPI_Pcontrol, (const int level, ...))
{
	(void)level;
	return 0;
}

double MPI_Wtime(void) __attribute__((weak, alias("PMPI_Wtime")));
double PMPI_Wtime(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double MPI_Wtick(void) __attribute__((weak, alias("PMPI_Wtick")));
double PMPI_Wtick(void) { return 1e-9; }

intptr_t MPI_Aint_add(intptr_t, intptr_t) __attribute__((weak, alias("PMPI_Aint_add")));
intptr_t PMPI_Aint_add(intptr_t base, intptr_t disp) { return base + disp; }

intptr_t MPI_Aint_diff(intptr_t, intptr_t) __attribute__((weak, alias("PMPI_Aint_diff")));
intptr_t PMPI_Aint_diff(intptr_t a, intptr_t b) { return a - b; }

FUNCTION(MPIX_Query_cuda_support, (void)) { return 0; }
FUNCTION(MPIX_Query_hip_support, (void)) { return 0; }
FUNCTION(MPIX_Query_ze_support, (void)) { return 0; }
