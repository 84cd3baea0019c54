/* ranks: 3 */
/* Files: views with gaps in memory and in the file, each form of a call, errors, external32. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, errors;

static void check(int ok, const char *what)
{
	if (!ok) {
		printf("rank %d: %s\n", rank, what);
		errors++;
	}
}

static int class_of(int code)
{
	int c;

	MPI_Error_class(code, &c);
	return c;
}

/* Each rank writes every size-th int from its rank on, from every second int of memory. */
static void strided(MPI_File f)
{
	enum { N = 1000 };
	int mem[2 * N], back[2 * N], i, n;
	MPI_Datatype in_file, in_memory, t1, t2;
	MPI_Offset disp, at;
	MPI_Request req;
	MPI_Status st;
	char rep[MPI_MAX_DATAREP_STRING];

	MPI_Type_vector(N, 1, size, MPI_INT, &in_file);
	MPI_Type_vector(N, 1, 2, MPI_INT, &in_memory);
	MPI_Type_commit(&in_file);
	MPI_Type_commit(&in_memory);
	for (i = 0; i < 2 * N; i++)
		mem[i] = i % 2 ? -1 : i / 2 * size + rank;
	MPI_File_set_view(f, rank * sizeof(int), MPI_INT, in_file, "native", MPI_INFO_NULL);
	MPI_File_get_view(f, &disp, &t1, &t2, rep);
	check(disp == rank * (MPI_Offset)sizeof(int) && t1 == MPI_INT && strcmp(rep, "native") == 0, "get_view");
	MPI_Type_free(&t2);
	MPI_File_write_all(f, mem, 1, in_memory, &st);
	MPI_Get_count(&st, MPI_INT, &n);
	check(n == N, "count of write_all");
	MPI_File_get_position(f, &at);
	check(at == N, "position after write_all");
	MPI_File_get_byte_offset(f, 1, &at);
	check(at == (rank + size) * (MPI_Offset)sizeof(int), "byte offset");
	memset(back, 255, sizeof back);
	MPI_File_iread_at_all(f, 0, back, 1, in_memory, &req);
	MPI_Wait(&req, &st);
	MPI_Get_count(&st, in_memory, &n);
	check(n == 1 && memcmp(mem, back, sizeof mem) == 0, "iread_at_all");
	memset(back, 255, sizeof back);
	MPI_File_read_at_all_begin(f, 0, back, 1, in_memory);
	MPI_File_read_at_all_end(f, back, &st);
	check(memcmp(mem, back, sizeof mem) == 0, "split read");
	MPI_File_sync(f);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
	MPI_File_read_at(f, 0, back, 2 * N, MPI_INT, &st);
	for (i = 0; i < 2 * N; i++)
		check(back[i] == i, "ints in the file");
	MPI_File_seek(f, 0, MPI_SEEK_END);
	MPI_File_get_position(f, &at);
	check(at == (MPI_Offset)N * size, "end of the file");
	MPI_File_read(f, back, 1, MPI_INT, &st);
	MPI_Get_count(&st, MPI_INT, &n);
	check(n == 0, "read at the end");
	MPI_Type_free(&in_file);
	MPI_Type_free(&in_memory);
}

static void shared_and_external(MPI_File f)
{
	int x[2], i, seen = 0;
	short s = 258;
	unsigned char raw[2];
	MPI_Offset at;

	MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
	x[0] = x[1] = rank;
	MPI_File_write_shared(f, x, 2, MPI_INT, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_get_position_shared(f, &at);
	check(at == 2 * size, "shared position");
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_write_ordered(f, x, 1, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_sync(f);
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < size; i++) {
		MPI_File_read_at(f, 2 * i, x, 2, MPI_INT, MPI_STATUS_IGNORE);
		check(x[0] == x[1], "a record of write_shared");
		seen |= 1 << x[0];
		MPI_File_read_at(f, 2 * size + i, x, 1, MPI_INT, MPI_STATUS_IGNORE);
		if (x[0] != i) printf("rank %d record %d is %d\n", rank, i, x[0]);
		check(x[0] == i, "a record of write_ordered");
	}
	check(seen == (1 << size) - 1, "records of all ranks");
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_set_view(f, 0, MPI_SHORT, MPI_SHORT, "external32", MPI_INFO_NULL);
	MPI_File_write_at(f, rank, &s, 1, MPI_SHORT, MPI_STATUS_IGNORE);
	s = 0;
	MPI_File_read_at(f, rank, &s, 1, MPI_SHORT, MPI_STATUS_IGNORE);
	check(s == 258, "external32");
	MPI_File_sync(f);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
	MPI_File_read_at(f, 2 * rank, raw, 2, MPI_BYTE, MPI_STATUS_IGNORE);
	check(raw[0] == 1 && raw[1] == 2, "bytes of external32");
}

int main(int argc, char **argv)
{
	char name[200] = "";
	MPI_File f, null = MPI_FILE_NULL;
	MPI_Info info;
	MPI_Errhandler handler;
	int flag, amode;
	char value[100] = "";

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0)
		snprintf(name, sizeof name, "/tmp/muster-files-%d", (int)getpid());
	MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);

	check(class_of(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f)) == MPI_ERR_NO_SUCH_FILE, "a missing file");
	check(class_of(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_INFO_NULL, &f)) == MPI_ERR_AMODE, "an access mode");
	check(class_of(MPI_File_sync(null)) == MPI_ERR_FILE, "MPI_FILE_NULL");
	MPI_Info_create(&info);
	MPI_Info_set(info, "cb_buffer_size", "1000");
	MPI_Info_set(info, "romio_cb_write", "enable");
	MPI_Info_set(info, "direct_write", "true");
	check(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, info, &f) == MPI_SUCCESS, "open");
	MPI_Info_free(&info);
	MPI_File_get_info(f, &info);
	MPI_Info_get(info, "cb_buffer_size", 99, value, &flag);
	check(flag && strcmp(value, "1000") == 0, "hint");
	MPI_Info_get(info, "direct_write", 99, value, &flag);
	check(flag && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0), "direct_write"); /* as the file system can */
	MPI_Info_free(&info);
	MPI_File_get_amode(f, &amode);
	check(amode == (MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE), "access mode");
	MPI_File_get_errhandler(f, &handler);
	check(handler == MPI_ERRORS_RETURN, "error handler");
	strided(f);
	MPI_File_set_size(f, 0);
	shared_and_external(f);
	MPI_File_close(&f);
	check(f == MPI_FILE_NULL, "handle after close");
	MPI_Barrier(MPI_COMM_WORLD);
	check(access(name, F_OK) != 0, "delete on close");
	MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0 && errors == 0)
		printf("No Errors\n");
	MPI_Finalize();
	return errors != 0;
}
