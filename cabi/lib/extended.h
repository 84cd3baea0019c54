#include <stdint.h>

/* muster_extended returns the address of the function that applies a predefined operation to
 * types that Go does not have, with the parameters in, inout, length, operation and kind. */
uintptr_t muster_extended(void);
