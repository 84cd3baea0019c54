//go:build cabi

// Command lib is the core of the C interface as a shared library, libmuster_core.so. The
// front loads it in MPI_Init.
package main

/*
#include <stdint.h>
#include "extended.h"

// Calls a function of the program. All parameters of callbacks are integers and pointers,
// which the calling conventions of amd64 and arm64 pass alike.
static int32_t callback(uintptr_t fn, int n, uint64_t *a)
{
	switch (n) {
	case 1: return ((int (*)(uint64_t))fn)(a[0]);
	case 2: return ((int (*)(uint64_t, uint64_t))fn)(a[0], a[1]);
	case 3: return ((int (*)(uint64_t, uint64_t, uint64_t))fn)(a[0], a[1], a[2]);
	case 4: return ((int (*)(uint64_t, uint64_t, uint64_t, uint64_t))fn)(a[0], a[1], a[2], a[3]);
	case 5: return ((int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))fn)(a[0], a[1], a[2], a[3], a[4]);
	case 6: return ((int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))fn)(a[0], a[1], a[2], a[3], a[4], a[5]);
	default: return ((int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))fn)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
	}
}
*/
import "C"

import "github.com/muster-mpi/muster/cabi/core"

// process is the library: a shared library exists once in a process.
var process = core.New(callback, uintptr(C.muster_extended()))

func callback(fn uintptr, args ...uint64) int32 {
	var a [8]C.uint64_t
	for i, v := range args {
		a[i] = C.uint64_t(v)
	}
	return int32(C.callback(C.uintptr_t(fn), C.int(len(args)), &a[0]))
}

//export muster_core_call
func muster_core_call(id C.int, args, out C.uintptr_t) C.int {
	return C.int(process.Call(int(id), uintptr(args), uintptr(out)))
}

//export muster_core_abort
func muster_core_abort(code C.int, reason *C.char) {
	process.Abort(int(code), C.GoString(reason))
}

func main() {}
