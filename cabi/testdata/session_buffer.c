/* ranks: 2 */
/* only: mpi5 */
/* Buffered sends on communicators of a session use the buffer of the session, and those of
 * MPI_COMM_WORLD do not (MPI-4.1 section 3.6). */

#include <mpi.h>
#include <stdio.h>

static int faults;

static void expect(const char *what, int got, int want)
{
	int class;

	MPI_Error_class(got, &class);
	if (class != want) {
		printf("%s: error class %d, not %d\n", what, class, want);
		faults++;
	}
}

int main(void)
{
	static char buffer[1000 + MPI_BSEND_OVERHEAD];
	MPI_Session session;
	MPI_Group world, members;
	MPI_Comm comm, dup;
	MPI_Request request;
	int rank, size, word = 7, got = 0, i;
	void *detached;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
	MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
	MPI_Group_incl(world, 2, (int[]){1, 0}, &members);
	MPI_Comm_create_from_group(members, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
	MPI_Comm_dup(comm, &dup);
	MPI_Comm_rank(dup, &rank);

	expect("without a buffer", MPI_Bsend(&word, 1, MPI_INT, 1 - rank, 1, dup), MPI_ERR_BUFFER);
	expect("attach", MPI_Session_attach_buffer(session, buffer, sizeof buffer), MPI_SUCCESS);
	expect("attach twice", MPI_Session_attach_buffer(session, buffer, sizeof buffer), MPI_ERR_BUFFER);
	for (i = 0; i < 2; i++)
		expect("with a buffer", MPI_Bsend(&word, 1, MPI_INT, 1 - rank, 1, i ? comm : dup), MPI_SUCCESS);
	MPI_Recv(&got, 1, MPI_INT, 1 - rank, 1, dup, MPI_STATUS_IGNORE);
	MPI_Recv(&got, 1, MPI_INT, 1 - rank, 1, comm, MPI_STATUS_IGNORE);
	if (got != 7)
		printf("received %d, not 7\n", got), faults++;
	expect("flush", MPI_Session_flush_buffer(session), MPI_SUCCESS);
	expect("start of a flush", MPI_Session_iflush_buffer(session, &request), MPI_SUCCESS);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	expect("detach", MPI_Session_detach_buffer(session, &detached, &size), MPI_SUCCESS);
	if (detached != buffer || size != sizeof buffer)
		printf("the buffer that is detached is not that which was attached\n"), faults++;

	MPI_Reduce(rank ? &faults : MPI_IN_PLACE, &faults, 1, MPI_INT, MPI_SUM, 0, comm);
	if (rank == 0 && faults == 0)
		printf("No Errors\n");
	MPI_Group_free(&members);
	MPI_Group_free(&world);
	MPI_Comm_free(&dup);
	MPI_Comm_free(&comm);
	return MPI_Session_finalize(&session);
}
