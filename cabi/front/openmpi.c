/* What the Fortran library of Open MPI needs besides functions of MPI: strings of Fortran,
 * which have no NUL and end in blanks, and arrays of them. */

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

/* free_strings frees an array of strings that ends with NULL. */
static void free_strings(char **list)
{
	char **s;

	for (s = list; s != NULL && *s != NULL; s++)
		free(*s);
	free(list);
}

/* strings_f2c makes an array of C that ends with NULL: of count strings or, if that is negative, of those
 * before the first that is blank (MPI-4.1 section 11.8.2). They are advance bytes apart. The library frees
 * the array with opal_argv_free, which calls free. */
static int strings_f2c(const char *from, int count, int length, int advance, char ***to)
{
	char **list = NULL, **more, *s;
	int n, code = OPEN_SUCCESS;

	for (n = 0;; n++, from += advance) {
		more = realloc(list, ((size_t)n + 1) * sizeof *list);
		if (more == NULL) {
			if (n > 0) /* the last one is lost in favor of the end */
				free(list[n - 1]), list[n - 1] = NULL;
			code = OPEN_ERR_NO_MEMORY;
			break;
		}
		list = more;
		list[n] = NULL;
		if (n == count)
			break;
		code = ompi_fortran_string_f2c(from, length, &s);
		if (code != OPEN_SUCCESS)
			break;
		if (count < 0 && *s == 0) {
			free(s);
			break;
		}
		list[n] = s;
	}
	if (code != OPEN_SUCCESS) {
		free_strings(list);
		list = NULL;
	}
	*to = list;
	return code;
}

int ompi_fortran_argv_blank_f2c(const char *from, int length, int advance, char ***to);
int ompi_fortran_argv_blank_f2c(const char *from, int length, int advance, char ***to)
{
	return strings_f2c(from, -1, length, advance, to);
}

int ompi_fortran_argv_count_f2c(const char *from, int count, int length, int advance, char ***to);
int ompi_fortran_argv_count_f2c(const char *from, int count, int length, int advance, char ***to)
{
	return strings_f2c(from, count, length, advance, to);
}

/* The arguments of count commands are the rows of a two-dimensional array. */
int ompi_fortran_multiple_argvs_f2c(int count, const char *from, int length, char ****to);
int ompi_fortran_multiple_argvs_f2c(int count, const char *from, int length, char ****to)
{
	char ***list = calloc((size_t)count + 1, sizeof *list);
	int i, code = list == NULL ? OPEN_ERR_NO_MEMORY : OPEN_SUCCESS;

	for (i = 0; i < count && code == OPEN_SUCCESS; i++)
		code = strings_f2c(from + (size_t)i * (size_t)length, -1, length, length * count, &list[i]);
	if (code != OPEN_SUCCESS && list != NULL) {
		for (i = 0; i < count; i++)
			free_strings(list[i]);
		free(list);
		list = NULL;
	}
	*to = list;
	return code;
}

int ompi_fortran_string_c2f(const char *from, char *to, int length);
int ompi_fortran_string_c2f(const char *from, char *to, int length)
{
	int n = (int)strnlen(from, (size_t)length);

	memcpy(to, from, (size_t)n);
	memset(to + n, ' ', (size_t)(length - n));
	return OPEN_SUCCESS;
}
