/* ranks: 2 */
/* Messages that the front sends and receives itself, mixed with those that need the core:
 * every step runs often enough that the two share what they need. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, errors;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			errors++;                                                                  \
			fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #condition);     \
		}                                                                                  \
	} while (0)

enum { ROUNDS = 2000, WINDOW = 64, MANY = 3000 };

/* Blocking messages of all sizes in one direction and back. */
static void pingpong(int peer, MPI_Comm comm)
{
	static const int lengths[] = {0, 1, 8, 24, 25, 56, 64, 1000, 4096, 32000, 33000, 70000};
	static unsigned char out[70000], in[70001];
	int me, i, k, n;
	MPI_Status st;

	MPI_Comm_rank(comm, &me);
	for (i = 0; i < ROUNDS; i++) {
		n = lengths[i % 12];
		for (k = 0; k < n; k += 97)
			out[k] = (unsigned char)(i + k);
		memset(&st, 0, sizeof st);
		if (me < peer)
			MPI_Send(out, n, MPI_BYTE, peer, i, comm);
		MPI_Recv(in, sizeof in, MPI_BYTE, peer, i % 3 ? i : MPI_ANY_TAG, comm, &st);
		if (me > peer)
			MPI_Send(out, n, MPI_BYTE, peer, i, comm);
		MPI_Get_count(&st, MPI_BYTE, &k);
		CHECK(k == n && st.MPI_SOURCE == peer && st.MPI_TAG == i);
		MPI_Get_count(&st, MPI_DOUBLE, &k);
		CHECK(k == (n % 8 ? MPI_UNDEFINED : n / 8));
		for (k = 0; k < n; k += 97)
			CHECK(in[k] == (unsigned char)(i + k));
	}
}

/* A window of receives, with tags in another order than the messages, and some that come
 * before their receives. */
static void window(int peer, MPI_Comm comm)
{
	int in[WINDOW], out[WINDOW], i, k, round;
	MPI_Request r[2 * WINDOW];
	MPI_Status st[2 * WINDOW];

	for (round = 0; round < ROUNDS / 10; round++) {
		for (i = 0; i < WINDOW; i++) {
			out[i] = round * WINDOW + i;
			if (round % 2)
				MPI_Isend(&out[i], 1, MPI_INT, peer, i, comm, &r[i]);
			k = round % 3 ? i : WINDOW - 1 - i;
			MPI_Irecv(&in[k], 1, MPI_INT, peer, k, comm, &r[WINDOW + k]);
		}
		for (i = 0; i < WINDOW && round % 2 == 0; i++)
			MPI_Isend(&out[i], 1, MPI_INT, peer, i, comm, &r[i]);
		if (round % 5 == 1) {
			for (i = 0; i < 2 * WINDOW; i++) {
				int done = 0;
				while (!done)
					MPI_Test(&r[i], &done, &st[i]);
			}
		} else if (round % 5 == 2) {
			for (i = 2 * WINDOW; i > 0; i--)
				MPI_Wait(&r[i - 1], &st[i - 1]);
		} else if (round % 5 == 3) {
			for (i = 0; i < 2 * WINDOW; i++) {
				MPI_Status one;
				MPI_Waitany(2 * WINDOW, r, &k, &one);
				st[k] = one;
			}
		} else {
			MPI_Waitall(2 * WINDOW, r, st);
		}
		for (i = 0; i < WINDOW; i++) {
			CHECK(in[i] == round * WINDOW + i);
			CHECK(st[WINDOW + i].MPI_TAG == i && st[WINDOW + i].MPI_SOURCE == peer);
			CHECK(r[i] == MPI_REQUEST_NULL && r[WINDOW + i] == MPI_REQUEST_NULL);
		}
	}
}

/* Messages with one tag do not overtake each other, whatever their size, communicator and
 * the kind of receive. */
static void order(int peer, MPI_Comm a, MPI_Comm b)
{
	static int big[20000];
	int i, one;
	MPI_Request r[3];
	MPI_Status st;

	for (i = 0; i < ROUNDS / 4; i++) {
		int other = -1, wild = -1, sent = i;
		if (rank < peer) {
			big[0] = i;
			MPI_Send(&sent, 1, MPI_INT, peer, 7, a);
			MPI_Send(big, i % 3 ? 20000 : 500, MPI_INT, peer, 7, a);
			MPI_Send(&sent, 1, MPI_INT, peer, 7, b);
			MPI_Send(&sent, 1, MPI_INT, peer, 7, a);
			MPI_Recv(&one, 1, MPI_INT, peer, 8, a, MPI_STATUS_IGNORE);
			CHECK(one == i);
			continue;
		}
		MPI_Irecv(&one, 1, MPI_INT, i % 2 ? peer : MPI_ANY_SOURCE, 7, a, &r[0]);
		MPI_Irecv(big, 20000, MPI_INT, peer, 7, a, &r[1]);
		MPI_Irecv(&wild, 1, MPI_INT, peer, MPI_ANY_TAG, a, &r[2]);
		MPI_Recv(&other, 1, MPI_INT, peer, 7, b, &st);
		CHECK(other == i);
		MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
		CHECK(one == i && big[0] == i && wild == i);
		MPI_Send(&sent, 1, MPI_INT, peer, 8, a);
	}
}

/* Probes, cancelled receives, freed requests and truncation after messages of the front. */
static void others(int peer, MPI_Comm comm)
{
	int i, k, x[2], flag, code, class;
	MPI_Request r, never;
	MPI_Message m;
	MPI_Status st;

	for (i = 0; i < ROUNDS / 4; i++) {
		x[0] = i, x[1] = -i;
		if (rank < peer) {
			MPI_Send(x, 1, MPI_INT, peer, 1, comm);
			MPI_Isend(x, 2, MPI_INT, peer, 2, comm, &r);
			MPI_Request_free(&r);
			MPI_Send(x, 2, MPI_INT, peer, 3, comm);
			MPI_Send(x, 1, MPI_INT, peer, 4, comm);
			MPI_Ssend(x, 1, MPI_INT, peer, 5, comm);
			MPI_Recv(x, 1, MPI_INT, peer, 6, comm, MPI_STATUS_IGNORE);
			continue;
		}
		MPI_Irecv(&k, 1, MPI_INT, peer, 99, comm, &never);
		MPI_Recv(x, 1, MPI_INT, peer, 1, comm, MPI_STATUS_IGNORE);
		MPI_Cancel(&never);
		MPI_Wait(&never, &st);
		MPI_Test_cancelled(&st, &flag);
		CHECK(flag);
		MPI_Probe(peer, 2, comm, &st);
		MPI_Get_count(&st, MPI_INT, &k);
		CHECK(k == 2);
		MPI_Recv(x, 2, MPI_INT, peer, 2, comm, &st);
		CHECK(x[0] == i && x[1] == -i);
		MPI_Irecv(x, 1, MPI_INT, peer, 3, comm, &r);
		code = MPI_Wait(&r, &st); /* two elements have come */
		MPI_Error_class(code, &class);
		CHECK(class == MPI_ERR_TRUNCATE);
		MPI_Mprobe(MPI_ANY_SOURCE, 4, comm, &m, &st);
		MPI_Mrecv(x, 1, MPI_INT, &m, &st);
		CHECK(x[0] == i && st.MPI_SOURCE == peer);
		MPI_Irecv(x, 1, MPI_INT, peer, 5, comm, &r);
		MPI_Request_get_status(r, &flag, &st);
		MPI_Wait(&r, &st);
		MPI_Send(x, 1, MPI_INT, peer, 6, comm);
	}
}

/* More outstanding receives than the front keeps, and messages to the rank itself. */
static void many(int peer, MPI_Comm comm)
{
	static int in[MANY], out[MANY];
	static MPI_Request r[MANY], s[MANY];
	int i, self = -1;

	MPI_Irecv(&self, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &r[0]);
	MPI_Send(&rank, 1, MPI_INT, rank, 5, MPI_COMM_WORLD);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	CHECK(self == rank);
	for (i = 0; i < MANY; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, peer, i % 2, comm, &r[i]);
	for (i = 0; i < MANY; i++) {
		out[i] = i;
		MPI_Isend(&out[i], 1, MPI_INT, peer, i % 2, comm, &s[i]);
	}
	MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
	MPI_Waitall(MANY, s, MPI_STATUSES_IGNORE);
	for (i = 0; i < MANY; i++)
		CHECK(in[i] == i);
	/* And the messages first. */
	for (i = 0; i < MANY; i++)
		MPI_Send(&out[i], 1, MPI_INT, peer, 0, comm);
	for (i = 0; i < MANY; i++) {
		MPI_Recv(&in[i], 1, MPI_INT, peer, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
		CHECK(in[i] == i);
	}
}

/* All ranks: rank 0 receives from any source. */
static void server(void)
{
	int i, x, next[64] = {0};
	MPI_Status st;

	for (i = 0; i < ROUNDS * (rank ? 1 : size - 1); i++) {
		if (rank > 0) {
			MPI_Send(&i, 1, MPI_INT, 0, 11, MPI_COMM_WORLD);
			if (i % 16 == 0)
				MPI_Recv(&x, 1, MPI_INT, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			continue;
		}
		MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, &st);
		CHECK(x == next[st.MPI_SOURCE]++);
		if (x % 16 == 0)
			MPI_Send(&x, 1, MPI_INT, st.MPI_SOURCE, 12, MPI_COMM_WORLD);
	}
}

/* A second thread ends the direct path: from now on all calls go to the core. It takes over
 * receives that the first one has posted. */
static MPI_Request handed[2];

static void *second(void *comm)
{
	int x = -1, i;

	MPI_Waitall(2, handed, MPI_STATUSES_IGNORE);
	for (i = 0; i < ROUNDS / 4; i++) {
		MPI_Send(&i, 1, MPI_INT, 1 - rank, 21, *(MPI_Comm *)comm);
		MPI_Recv(&x, 1, MPI_INT, 1 - rank, 21, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
		CHECK(x == i);
	}
	return NULL;
}

static void threads(MPI_Comm comm)
{
	int in[2] = {-1, -1}, i, x = 0;
	pthread_t t;

	MPI_Irecv(&in[0], 1, MPI_INT, 1 - rank, 20, comm, &handed[0]);
	MPI_Irecv(&in[1], 1, MPI_INT, 1 - rank, 20, comm, &handed[1]);
	pthread_create(&t, NULL, second, &comm);
	for (i = 0; i < 2; i++)
		MPI_Send(&i, 1, MPI_INT, 1 - rank, 20, comm);
	for (i = 0; i < ROUNDS / 4; i++) {
		MPI_Send(&i, 1, MPI_INT, 1 - rank, 22, comm);
		MPI_Recv(&x, 1, MPI_INT, 1 - rank, 22, comm, MPI_STATUS_IGNORE);
		CHECK(x == i);
	}
	pthread_join(t, NULL);
	CHECK(in[0] == 0 && in[1] == 1);
}

int main(int argc, char **argv)
{
	MPI_Comm pair, dup;
	int level, total;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(level == MPI_THREAD_MULTIPLE);
	MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
	MPI_Comm_dup(pair, &dup);
	MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
	if (rank < 2) {
		pingpong(1 - rank, MPI_COMM_WORLD);
		window(1 - rank, dup);
		order(1 - rank, pair, dup);
		others(1 - rank, dup);
		many(1 - rank, pair);
		pingpong(1 - rank, pair);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	server();
	if (rank < 2)
		threads(dup);
	MPI_Comm_free(&dup);
	MPI_Comm_free(&pair);
	MPI_Reduce(&errors, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0 && total == 0)
		printf(" No Errors\n");
	MPI_Finalize();
	return 0;
}
