/* ranks: 2 */
/* only: mpich mpi5 */
/* Datatypes where the tests of MPICH do not look: large counts, contents of types that were
 * freed, external32 of mixed structs, attributes of duplicates, and types freed in use. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int errs, copies, deletes;

#define CHECK(x) \
	do { \
		if (!(x)) { \
			errs++; \
			fprintf(stderr, "line %d: %s\n", __LINE__, #x); \
		} \
	} while (0)

static int error_class(int code)
{
	int class;
	MPI_Error_class(code, &class);
	return class;
}

static void large_counts(void)
{
	MPI_Datatype t, sub, base, types[1];
	MPI_Count n[4], c[8], lb, extent, size, count, sizes[2] = {1L << 33, 4}, subsizes[2] = {1L << 32, 2}, starts[2] = {1, 1};
	MPI_Aint addr[1];
	int combiner, ints[4], narrow, i[4];
	MPI_Status st;

	MPI_Type_vector_c(1L << 32, 1, 2, MPI_DOUBLE, &t);
	MPI_Type_size_c(t, &size);
	CHECK(size == 1L << 35);
	MPI_Type_size(t, &narrow);
	CHECK(narrow == MPI_UNDEFINED);
	MPI_Type_get_extent_c(t, &lb, &extent);
	CHECK(lb == 0 && extent == (1L << 36) - 8);
	MPI_Type_get_envelope_c(t, &n[0], &n[1], &n[2], &n[3], &combiner);
	CHECK(combiner == MPI_COMBINER_VECTOR && n[0] == 0 && n[1] == 0 && n[2] == 3 && n[3] == 1);
	MPI_Type_get_contents_c(t, 0, 0, 3, 1, ints, addr, c, types);
	CHECK(c[0] == 1L << 32 && c[1] == 1 && c[2] == 2 && types[0] == MPI_DOUBLE);
	CHECK(error_class(MPI_Type_get_envelope(t, &i[0], &i[1], &i[2], &combiner)) == MPI_ERR_TYPE);
	MPI_Type_free(&t);

	MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_BYTE, &sub);
	MPI_Type_get_true_extent_c(sub, &lb, &extent);
	CHECK(lb == 1 + (1L << 33) && extent == (1L << 33) + (1L << 32));
	MPI_Type_get_envelope_c(sub, &n[0], &n[1], &n[2], &n[3], &combiner);
	CHECK(combiner == MPI_COMBINER_SUBARRAY && n[0] == 2 && n[1] == 0 && n[2] == 6 && n[3] == 1);
	MPI_Type_free(&sub);

	MPI_Type_contiguous(4, MPI_INT, &base);
	memset(&st, 0, sizeof st);
	MPI_Status_set_elements_x(&st, base, 1L << 40);
	MPI_Get_elements_x(&st, base, &count);
	CHECK(count == 1L << 40);
	MPI_Get_count_c(&st, base, &count);
	CHECK(count == 1L << 38);
	MPI_Get_count(&st, base, &narrow);
	CHECK(narrow == MPI_UNDEFINED);
	MPI_Type_free(&base);
}

/* The contents of a type are handles of their own, also of a type that was freed. */
static void contents_of_freed(void)
{
	MPI_Datatype inner, outer, back[1], other;
	int ints[1], n[3], combiner, size;
	MPI_Aint addrs[1];

	MPI_Type_contiguous(3, MPI_SHORT, &inner);
	MPI_Type_contiguous(5, inner, &outer);
	MPI_Type_get_contents(outer, 1, 0, 1, ints, addrs, back);
	MPI_Type_free(&back[0]);
	MPI_Type_size(inner, &size); /* the program has its own handle still */
	CHECK(size == 6);
	MPI_Type_free(&inner);
	CHECK(inner == MPI_DATATYPE_NULL);
	MPI_Type_contiguous(7, MPI_CHAR, &other); /* may get the handle of inner */
	MPI_Type_get_contents(outer, 1, 0, 1, ints, addrs, back);
	CHECK(ints[0] == 5);
	MPI_Type_size(back[0], &size);
	CHECK(size == 6);
	MPI_Type_get_envelope(back[0], &n[0], &n[1], &n[2], &combiner);
	CHECK(combiner == MPI_COMBINER_CONTIGUOUS && n[2] == 1);
	MPI_Type_size(other, &size);
	CHECK(size == 7);
	MPI_Type_free(&back[0]);
	MPI_Type_free(&other);
	MPI_Type_free(&outer);
	CHECK(error_class(MPI_Type_get_contents(MPI_INT, 0, 0, 0, ints, addrs, back)) == MPI_ERR_TYPE);
}

struct record {
	char tag;
	double value[2];
	long id;
	short code;
};

static void external(void)
{
	struct record in[2] = {{'a', {1.0, -2.5}, -3, 4}, {'b', {0.0, 1e300}, 5, -6}}, out[2];
	int lengths[4] = {1, 2, 1, 1};
	MPI_Aint displs[4] = {0, 8, 24, 32}, size, pos = 0;
	MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_LONG, MPI_SHORT}, t;
	unsigned char packed[64], head[] = {'a', 0x3f, 0xf0, 0, 0, 0, 0, 0, 0}, tail[] = {0xff, 0xff, 0xff, 0xfd, 0, 4};

	MPI_Type_create_struct(4, lengths, displs, types, &t);
	MPI_Type_commit(&t);
	MPI_Pack_external_size("external32", 2, t, &size);
	CHECK(size == 2 * (1 + 16 + 4 + 2)); /* a long has 4 bytes in external32 */
	MPI_Pack_external("external32", in, 2, t, packed, sizeof packed, &pos);
	CHECK(pos == size);
	CHECK(memcmp(packed, head, sizeof head) == 0);
	CHECK(memcmp(packed + 17, tail, sizeof tail) == 0);
	memset(out, 0, sizeof out);
	pos = 0;
	MPI_Unpack_external("external32", packed, size, &pos, out, 2, t);
	CHECK(pos == size);
	for (int i = 0; i < 2; i++)
		CHECK(out[i].tag == in[i].tag && out[i].value[0] == in[i].value[0] && out[i].value[1] == in[i].value[1] &&
		      out[i].id == in[i].id && out[i].code == in[i].code);
	pos = 0;
	CHECK(MPI_Pack_external("external32", in, 2, t, packed, size - 1, &pos) != MPI_SUCCESS && pos == 0);
	CHECK(MPI_Pack_external("native64", in, 2, t, packed, size, &pos) != MPI_SUCCESS);
	MPI_Type_free(&t);
}

static int copy(MPI_Datatype t, int key, void *extra, void *in, void *out, int *flag)
{
	(void)t, (void)key, (void)extra;
	*(void **)out = in;
	*flag = 1;
	copies++;
	return MPI_SUCCESS;
}

static int delete(MPI_Datatype t, int key, void *value, void *extra)
{
	(void)t, (void)key, (void)value, (void)extra;
	deletes++;
	return MPI_SUCCESS;
}

static void attributes(void)
{
	MPI_Datatype t, dup;
	int key, flag;
	void *value;

	MPI_Type_create_keyval(copy, delete, &key, NULL);
	MPI_Type_contiguous(2, MPI_INT, &t);
	MPI_Type_set_attr(t, key, &errs);
	MPI_Type_dup(t, &dup);
	MPI_Type_get_attr(dup, key, &value, &flag);
	CHECK(copies == 1 && flag && value == &errs);
	MPI_Type_free(&dup);
	CHECK(deletes == 1);
	MPI_Type_free(&t);
	CHECK(deletes == 2);
	MPI_Type_free_keyval(&key);
}

/* A type may be freed while messages use it, and memory may be given by addresses. */
static void messages(int rank)
{
	int data[64], scattered[2] = {-1, -1}, lengths[2] = {1, 1}, buf[2];
	MPI_Aint addrs[2];
	MPI_Datatype columns, absolute, uncommitted;
	MPI_Request req[2];

	for (int i = 0; i < 64; i++)
		data[i] = rank == 0 ? i : -1;
	MPI_Type_vector(8, 1, 8, MPI_INT, &columns);
	MPI_Type_create_resized(columns, 0, sizeof(int), &uncommitted);
	MPI_Type_free(&columns);
	CHECK(error_class(MPI_Send(data, 1, uncommitted, MPI_PROC_NULL, 0, MPI_COMM_WORLD)) == MPI_ERR_TYPE);
	columns = uncommitted;
	MPI_Type_commit(&columns);
	if (rank == 0) {
		MPI_Isend(data, 4, columns, 1, 0, MPI_COMM_WORLD, &req[0]);
		MPI_Type_free(&columns);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	} else {
		MPI_Irecv(data, 4, columns, 0, 0, MPI_COMM_WORLD, &req[0]);
		MPI_Type_free(&columns);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
		for (int i = 0; i < 64; i++)
			CHECK(data[i] == (i % 8 < 4 ? i : -1));
	}

	MPI_Get_address(&scattered[0], &addrs[1]);
	MPI_Get_address(&buf[1], &addrs[0]);
	MPI_Type_create_hindexed(2, lengths, addrs, MPI_INT, &absolute);
	MPI_Type_commit(&absolute);
	if (rank == 0) {
		buf[1] = 7;
		scattered[0] = 8;
		MPI_Send(MPI_BOTTOM, 1, absolute, 1, 1, MPI_COMM_WORLD);
	} else {
		MPI_Recv(MPI_BOTTOM, 1, absolute, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(buf[1] == 7 && scattered[0] == 8 && scattered[1] == -1);
	}
	MPI_Type_free(&absolute);
}

static void fortran_types(void)
{
	MPI_Datatype a, b;
	int size, n[3], combiner, ints[2];
	MPI_Aint addrs[1];
	MPI_Datatype types[1];

	MPI_Type_create_f90_real(12, MPI_UNDEFINED, &a);
	MPI_Type_create_f90_real(12, MPI_UNDEFINED, &b);
	MPI_Type_size(a, &size);
	CHECK(a == b && size == 8);
	MPI_Type_get_envelope(a, &n[0], &n[1], &n[2], &combiner);
	CHECK(combiner == MPI_COMBINER_F90_REAL && n[0] == 2 && n[1] == 0 && n[2] == 0);
	MPI_Type_get_contents(a, 2, 0, 0, ints, addrs, types);
	CHECK(ints[0] == 12 && ints[1] == MPI_UNDEFINED);
	CHECK(MPI_Type_free(&a) != MPI_SUCCESS);
	MPI_Type_create_f90_integer(9, &a);
	MPI_Type_size(a, &size);
	CHECK(size == 4);
	MPI_Type_create_f90_complex(6, 30, &a);
	MPI_Type_size(a, &size);
	CHECK(size == 8);
	CHECK(MPI_Type_create_f90_integer(40, &a) != MPI_SUCCESS);
}

int main(int argc, char **argv)
{
	int rank, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	large_counts();
	contents_of_freed();
	external();
	attributes();
	fortran_types();
	messages(rank);
	MPI_Allreduce(&errs, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0 && all == 0)
		printf("No Errors\n");
	MPI_Finalize();
	return all != 0;
}
