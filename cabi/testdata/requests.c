/* ranks: 2 */
/* only: mpich mpi5 */
/* Requests that the programs of MPICH do not test: partitions that arrive before others are
 * ready, generalized requests that are freed first, and errors of single requests. */

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "line %d: %s\n", __LINE__, #cond);                         \
			errors++;                                                                  \
		}                                                                                  \
	} while (0)

static int errors, rank, freed, queries;

/* The second partition is ready only after the receiver has seen the first one, and the
 * elements have gaps. */
static void partitions(void)
{
	int buf[8] = {0}, flag = 0;
	MPI_Datatype every_other;
	MPI_Request r;

	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other);
	MPI_Type_commit(&every_other);
	if (rank == 0) {
		MPI_Psend_init(buf, 2, 2, every_other, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
		MPI_Start(&r);
		buf[0] = 10, buf[2] = 12;
		MPI_Pready(0, r);
		MPI_Recv(&flag, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		buf[4] = 14, buf[6] = 16;
		MPI_Pready(1, r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	} else {
		MPI_Status st;
		int n;

		MPI_Precv_init(buf, 2, 2, every_other, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
		MPI_Start(&r);
		while (!flag)
			MPI_Parrived(r, 0, &flag);
		CHECK(buf[0] == 10 && buf[2] == 12 && buf[4] == 0 && buf[1] == 0);
		buf[0] = 99; /* it is the program's now */
		MPI_Parrived(r, 1, &flag);
		CHECK(!flag);
		MPI_Send(&flag, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
		MPI_Wait(&r, &st);
		MPI_Get_count(&st, MPI_INT, &n);
		CHECK(n == 4 && st.MPI_SOURCE == 0 && st.MPI_TAG == 3);
		CHECK(buf[0] == 99 && buf[4] == 14 && buf[6] == 16);
	}
	MPI_Request_free(&r);
	MPI_Type_free(&every_other);
}

static int query(void *state, MPI_Status *st)
{
	queries++;
	st->MPI_SOURCE = *(int *)state;
	st->MPI_TAG = 7;
	MPI_Status_set_elements(st, MPI_INT, 5);
	MPI_Status_set_cancelled(st, 0);
	return MPI_SUCCESS;
}

static int release(void *state)
{
	(void)state;
	freed++;
	return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
	(void)state, (void)complete;
	return MPI_SUCCESS;
}

static void generalized(void)
{
	int state = 42, flag, n;
	MPI_Request r, copy;
	MPI_Status st;

	MPI_Grequest_start(query, release, cancel, &state, &r);
	copy = r;
	MPI_Request_free(&r); /* before it is complete */
	CHECK(r == MPI_REQUEST_NULL && freed == 0);
	MPI_Grequest_complete(copy);
	CHECK(freed == 1);

	MPI_Grequest_start(query, release, cancel, &state, &r);
	MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE);
	CHECK(!flag && queries == 0);
	MPI_Grequest_complete(r);
	MPI_Request_get_status(r, &flag, &st);
	CHECK(flag && queries == 1 && freed == 1 && st.MPI_SOURCE == 42);
	MPI_Wait(&r, &st);
	MPI_Get_count(&st, MPI_INT, &n);
	CHECK(queries == 2 && freed == 2 && n == 5 && st.MPI_TAG == 7 && r == MPI_REQUEST_NULL);
}

/* One of two messages is too long: its error is in its status. */
static void one_fails(void)
{
	int buf[8] = {0}, class, done, index[2];
	MPI_Request r[2];
	MPI_Status st[2];

	if (rank == 0) {
		MPI_Send(buf, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		MPI_Send(buf, 8, MPI_INT, 1, 1, MPI_COMM_WORLD);
		MPI_Send(buf, 0, MPI_INT, 1, 2, MPI_COMM_WORLD);
		return;
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Irecv(buf, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &r[0]);
	MPI_Irecv(buf + 4, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &r[1]);
	MPI_Recv(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	memset(st, -1, sizeof st);
	MPI_Error_class(MPI_Waitsome(2, r, &done, index, st), &class);
	CHECK(class == MPI_ERR_IN_STATUS && done == 2);
	CHECK(st[0].MPI_ERROR == MPI_SUCCESS);
	MPI_Error_class(st[1].MPI_ERROR, &class);
	CHECK(class == MPI_ERR_TRUNCATE);
	CHECK(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* A message that does not fit the attached buffer. */
static void buffered(void)
{
	char buf[256], space[256 + MPI_BSEND_OVERHEAD - 1], *back;
	int class, size;

	memset(buf, 0, sizeof buf);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Error_class(MPI_Bsend(buf, 1, MPI_CHAR, 0, 0, MPI_COMM_SELF), &class);
	CHECK(class == MPI_ERR_BUFFER);
	MPI_Buffer_attach(space, sizeof space);
	MPI_Error_class(MPI_Bsend(buf, 256, MPI_CHAR, 0, 0, MPI_COMM_SELF), &class);
	CHECK(class == MPI_ERR_BUFFER);
	CHECK(MPI_Bsend(buf, 255, MPI_CHAR, 0, 0, MPI_COMM_SELF) == MPI_SUCCESS);
	MPI_Recv(buf, 255, MPI_CHAR, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	MPI_Buffer_detach(&back, &size);
	CHECK(back == space && size == (int)sizeof space);
}

int main(void)
{
	int all;

	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	partitions();
	generalized();
	one_fails();
	buffered();
	MPI_Reduce(&errors, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0 && all == 0)
		printf("No Errors\n");
	MPI_Finalize();
	return errors != 0;
}
