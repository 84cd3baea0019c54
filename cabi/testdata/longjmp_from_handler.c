/* ranks: 1 */
/* An error handler leaves the MPI call by longjmp, as exceptions of C++ do. The library must
 * be usable afterwards: it is called by the front, when no code of Go is on the stack. */

#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>

static jmp_buf before;
static int calls;

static void leave(MPI_Comm *comm, int *code, ...)
{
	int class = -1;

	MPI_Error_class(*code, &class);
	if (*comm == MPI_COMM_WORLD && class == MPI_ERR_RANK)
		calls++;
	longjmp(before, 1);
}

int main(int argc, char **argv)
{
	MPI_Errhandler handler;
	int out = 5, in = 0, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_create_errhandler(leave, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	for (i = 0; i < 10000; i++) {
		if (setjmp(before) == 0) {
			MPI_Send(&out, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
			printf("the call returned\n");
			return 1;
		}
	}
	MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Errhandler_free(&handler);
	if (calls == 10000 && in == 5)
		printf(" No Errors\n");
	else
		printf("%d calls of the handler, received %d\n", calls, in);
	MPI_Finalize();
	return 0;
}
