/* ranks: 1 */
/* Arguments that are not valid: an error of their class, at once. */

#include <limits.h>
#include <mpi.h>
#include <stdio.h>

static int errors;

static void expect(const char *call, int code, int want)
{
	int class;

	MPI_Error_class(code, &class);
	if (class != want) {
		printf("%s: error class %d, not %d\n", call, class, want);
		errors++;
	}
}

#define REFUSED(call, class) expect(#call, call, class)

/* Where the result would go, or a name, or a handle. */
static void nulls(void)
{
	char name[MPI_MAX_PROCESSOR_NAME];
	int n = 1;
	MPI_Win win;

	REFUSED(MPI_Get_processor_name(NULL, &n), MPI_ERR_ARG);
	REFUSED(MPI_Get_processor_name(name, NULL), MPI_ERR_ARG);
	REFUSED(MPI_Get_library_version(NULL, &n), MPI_ERR_ARG);
	REFUSED(MPI_Query_thread(NULL), MPI_ERR_ARG);
	REFUSED(MPI_Op_free(NULL), MPI_ERR_ARG);
	REFUSED(MPI_Reduce_local(NULL, &n, 1, MPI_INT, MPI_SUM), MPI_ERR_ARG);
	REFUSED(MPI_Reduce_local(&n, NULL, 1, MPI_INT, MPI_SUM), MPI_ERR_ARG);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	REFUSED(MPI_Win_attach(win, NULL, 8), MPI_ERR_ARG);
	REFUSED(MPI_Win_get_name(win, NULL, &n), MPI_ERR_ARG);
	MPI_Win_free(&win);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &n);
	if (MPI_T_pvar_session_free(NULL) == MPI_SUCCESS || MPI_T_pvar_handle_free(MPI_T_PVAR_SESSION_NULL, NULL) == MPI_SUCCESS)
		errors++;
	MPI_T_finalize();
}

/* Ranges with more ranks than the group has. */
static void ranges(void)
{
	int all[1][3] = {{0, INT_MAX, 1}}, down[1][3] = {{0, INT_MIN, -1}}, twice[2][3] = {{0, 0, 1}, {0, 0, 1}}, far[1][3] = {{0, 0, INT_MAX}};
	MPI_Group group, part;

	MPI_Comm_group(MPI_COMM_WORLD, &group);
	REFUSED(MPI_Group_range_incl(group, 1, all, &part), MPI_ERR_RANK);
	REFUSED(MPI_Group_range_excl(group, 1, all, &part), MPI_ERR_RANK);
	REFUSED(MPI_Group_range_incl(group, 1, down, &part), MPI_ERR_RANK);
	REFUSED(MPI_Group_range_incl(group, 2, twice, &part), MPI_ERR_RANK);
	REFUSED(MPI_Group_range_incl(group, 1, far, &part), MPI_SUCCESS);
	MPI_Group_free(&part);
	MPI_Group_free(&group);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	nulls();
	ranges();
	if (errors == 0)
		printf(" No Errors\n");
	MPI_Finalize();
	return 0;
}
