//go:build ofi && cgo && linux

// libfabric's verbs and EFA providers search all symbols of the kernel when they are
// initialized, to find out whether it lets adapters access the memory of graphics cards: twice
// ten megabytes of /proc/kallsyms, a kilobyte per read, in every process, whether there is such
// an adapter or not. That is four fifths of the processor time of opening libfabric. Nothing
// here uses such memory, and the providers handle a kernel that hides its symbols. So, in that
// one library, fopen is redirected to a function that does not find this one file.
//
// If the library is not as expected, nothing is changed.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inside.h"

#if __ELF_NATIVE_CLASS == 64
#define R_SYM ELF64_R_SYM
#else
#define R_SYM ELF32_R_SYM
#endif

static FILE *find_file(const char *path, const char *mode)
{
	if (!strcmp(path, "/proc/kallsyms")) {
		errno = ENOENT;
		return NULL;
	}
	return fopen(path, mode);
}

// point sets a word that may be in memory which was made read-only after loading.
static void point(void **word, void *to)
{
	uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)word & ~(size - 1);
	if (mprotect((void *)page, size, PROT_READ | PROT_WRITE) == 0) {
		*word = to;
		mprotect((void *)page, size, PROT_READ);
	}
}

void mo_spare_kernel_symbols(void *library)
{
	struct link_map *m;
	if (dlinfo(library, RTLD_DI_LINKMAP, &m))
		return;
	const ElfW(Sym) *symbols = NULL;
	const char *names = NULL;
	const ElfW(Rela) *jumps = NULL;
	size_t size = 0;
	int explicit_addends = 0;
	for (const ElfW(Dyn) *d = m->l_ld; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB:
			symbols = (const void *)d->d_un.d_ptr;
			break;
		case DT_STRTAB:
			names = (const void *)d->d_un.d_ptr;
			break;
		case DT_JMPREL:
			jumps = (const void *)d->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			size = d->d_un.d_val;
			break;
		case DT_PLTREL:
			explicit_addends = d->d_un.d_val == DT_RELA;
			break;
		}
	}
	if (!symbols || !names || !jumps || !explicit_addends)
		return;
	for (size_t i = 0; i < size / sizeof *jumps; i++) {
		void **word = (void **)(m->l_addr + jumps[i].r_offset);
		if (!strcmp(names + symbols[R_SYM(jumps[i].r_info)].st_name, "fopen") && *word == (void *)fopen)
			point(word, (void *)find_file);
	}
}
