//go:build cabi

/* Predefined operations on types that Go does not have: long double, and the real(16) of
 * Fortran, which is another type on amd64. */

#include "extended.h"

/* Operands in received messages are aligned to 8 bytes only. */
#define OPERAND __attribute__((aligned(8)))

#if defined(__x86_64__)
typedef __float128 quad OPERAND;
typedef _Complex float quad_complex __attribute__((mode(TC), aligned(8)));
#else
typedef long double quad OPERAND;
typedef _Complex long double quad_complex OPERAND;
#endif
typedef long double extended OPERAND;
typedef _Complex long double extended_complex OPERAND;

/* The numbers of the operations are those in their handles. */
enum { MAX = 1, MIN, SUM, PROD, MINLOC = 11, MAXLOC };

#define EACH(statement) for (long i = 0; i < n; i++) { statement; } break

#define COMPLEX(name, type)                                                                        \
	static void name(const type *a, type *b, long n, int op)                                       \
	{                                                                                              \
		switch (op) {                                                                              \
		case SUM: EACH(b[i] = a[i] + b[i]);                                                        \
		case PROD: EACH(b[i] = a[i] * b[i]);                                                       \
		}                                                                                          \
	}

#define REAL(name, type)                                                                           \
	static void name(const type *a, type *b, long n, int op)                                       \
	{                                                                                              \
		switch (op) {                                                                              \
		case MAX: EACH(if (a[i] > b[i]) b[i] = a[i]);                                              \
		case MIN: EACH(if (a[i] < b[i]) b[i] = a[i]);                                              \
		case SUM: EACH(b[i] = a[i] + b[i]);                                                        \
		case PROD: EACH(b[i] = a[i] * b[i]);                                                       \
		}                                                                                          \
	}

REAL(real_extended, extended)
REAL(real_quad, quad)
COMPLEX(complex_extended, extended_complex)
COMPLEX(complex_quad, quad_complex)

struct pair { long double value; int index; };

/* Of equal values the one with the smaller index is kept. */
static void pair_extended(const struct pair *a, struct pair *b, long n, int op)
{
	for (long i = 0; i < n; i++) {
		int better = op == MINLOC ? a[i].value < b[i].value : a[i].value > b[i].value;

		if (better || (a[i].value == b[i].value && a[i].index < b[i].index)) {
			b[i].value = a[i].value;
			b[i].index = a[i].index;
		}
	}
}

static int combine(uint64_t in, uint64_t inout, uint64_t n, uint64_t op, uint64_t kind)
{
	const void *a = (const void *)(uintptr_t)in;
	void *b = (void *)(uintptr_t)inout;

	switch (kind) {
	case 0: real_extended(a, b, (long)n, (int)op); break;
	case 1: complex_extended(a, b, (long)n, (int)op); break;
	case 2: pair_extended(a, b, (long)n, (int)op); break;
	case 3: real_quad(a, b, (long)n, (int)op); break;
	case 4: complex_quad(a, b, (long)n, (int)op); break;
	}
	return 0;
}

uintptr_t muster_extended(void) { return (uintptr_t)combine; }
