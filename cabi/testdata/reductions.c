/* ranks: 3 */
/* only: mpich mpi5 */

/* Operations of the program on datatypes with gaps, with a lower bound and with elements that
 * overlap, in all forms of a call, and arithmetic on types that Go does not have. */

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size, errors;

#define CHECK(ok)                                                                                  \
	do {                                                                                           \
		if (!(ok)) {                                                                               \
			printf("rank %d, line %d: %s\n", rank, __LINE__, #ok);                                 \
			errors++;                                                                              \
		}                                                                                          \
	} while (0)

struct record {
	int first;
	char gap[4];
	double second;
	char end[8];
};

/* Keeps the left first, and adds the second. It looks up the datatype, as MPI allows. */
static void combine(void *in, void *inout, int *n, MPI_Datatype *type)
{
	MPI_Aint lb, extent;

	MPI_Type_get_extent(*type, &lb, &extent);
	for (int i = 0; i < *n; i++) {
		struct record *a = (struct record *)((char *)in + i * extent);
		struct record *b = (struct record *)((char *)inout + i * extent);

		b->first = a->first;
		b->second += a->second;
	}
}

static void combine_c(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
	int length = (int)*n;

	combine(in, inout, &length, type);
}

enum { N = 100 };

static struct record in[N], out[N];

static void fill(void)
{
	memset(in, 'i', sizeof in);
	memset(out, 'o', sizeof out);
	for (int i = 0; i < N; i++) {
		in[i].first = 1000 * rank + i;
		in[i].second = rank + i;
	}
}

static void check(int n)
{
	for (int i = 0; i < n; i++) {
		CHECK(out[i].first == i);
		CHECK(out[i].second == size * i + size * (size - 1) / 2);
		CHECK(out[i].gap[0] == 'o' && out[i].end[7] == 'o');
	}
}

static void reductions(MPI_Datatype type, MPI_Op op)
{
	MPI_Request request;

	fill();
	MPI_Allreduce(in, out, N, type, op, MPI_COMM_WORLD);
	check(N);
	fill();
	MPI_Reduce(in, out, N, type, op, size - 1, MPI_COMM_WORLD);
	if (rank == size - 1)
		check(N);
	fill();
	MPI_Iallreduce(in, out, N, type, op, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	check(N);
	MPI_Allreduce_init(in, out, N, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
	for (int i = 0; i < 3; i++) {
		fill();
		MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		check(N);
	}
	MPI_Request_free(&request);
	fill();
	MPI_Exscan(in, out, N, type, op, MPI_COMM_WORLD);
	CHECK(rank == 0 ? out[3].first == 0x6f6f6f6f : out[3].first == 3);
}

int main(int argc, char **argv)
{
	int lengths[] = {1, 1}, all;
	MPI_Aint places[] = {0, 8};
	MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE}, plain, gaps;
	MPI_Op op, op_c;
	long double x, sum;
	struct { long double value; int index; } pair, best;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);

	MPI_Type_create_struct(2, lengths, places, types, &plain);
	MPI_Type_create_resized(plain, 0, sizeof(struct record), &gaps);
	MPI_Type_commit(&gaps);
	MPI_Op_create(combine, 0, &op);
	MPI_Op_create_c(combine_c, 0, &op_c);
	reductions(gaps, op);
	reductions(gaps, op_c);
	MPI_Type_free(&gaps);

	/* The extent is smaller than what the datatype spans. */
	MPI_Type_create_resized(plain, 0, 8, &gaps);
	MPI_Type_commit(&gaps);
	fill();
	MPI_Allreduce(in, out, 1, gaps, op, MPI_COMM_WORLD);
	check(1);
	MPI_Op_free(&op);
	MPI_Op_free(&op_c);
	CHECK(op == MPI_OP_NULL);

	x = 1 + rank;
	MPI_Allreduce(&x, &sum, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	CHECK(sum == size * (size + 1) / 2);
	pair.value = rank == 1 ? 5 : 3, pair.index = rank;
	MPI_Allreduce(&pair, &best, 1, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
	CHECK(best.value == 5 && best.index == 1);
	MPI_Allreduce(&pair, &best, 1, MPI_LONG_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
	CHECK(best.value == 3 && best.index == 0);

	MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf(all == 0 ? " No Errors\n" : " Found errors\n");
	MPI_Finalize();
	return all != 0;
}
