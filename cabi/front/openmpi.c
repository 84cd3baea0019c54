/* What the Fortran library of Open MPI needs besides functions of MPI: strings of Fortran,
 * which have no NUL and end in blanks. */

#include <stdlib.h>
#include <string.h>

enum { OPEN_SUCCESS = 0, OPEN_ERR_NO_MEMORY = -2 };

int ompi_fortran_string_f2c(const char *from, int length, char **to);
int ompi_fortran_string_f2c(const char *from, int length, char **to)
{
	int start = 0;

	while (length > 0 && from[length - 1] == ' ')
		length--;
	while (start < length && from[start] == ' ')
		start++;
	*to = malloc((size_t)(length - start) + 1);
	if (*to == NULL)
		return OPEN_ERR_NO_MEMORY;
	memcpy(*to, from + start, (size_t)(length - start));
	(*to)[length - start] = 0;
	return OPEN_SUCCESS;
}

int ompi_fortran_string_c2f(const char *from, char *to, int length);
int ompi_fortran_string_c2f(const char *from, char *to, int length)
{
	int n = (int)strnlen(from, (size_t)length);

	memcpy(to, from, (size_t)n);
	memset(to + n, ' ', (size_t)(length - n));
	return OPEN_SUCCESS;
}
