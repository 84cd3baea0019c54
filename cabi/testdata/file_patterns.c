/* ranks: 4 */
/* Collective writes and reads of a file by patterns: contiguous, strided, blocks of a matrix, rows of
 * planes. With arguments it measures, on any MPI: FILE PATTERN PIECE MEGABYTES ROUNDS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

struct pattern {
	MPI_Datatype type; /* of the file */
	MPI_Offset begin;
	long bytes; /* of a rank */
};

static struct pattern choose(const char *name, long piece, long bytes)
{
	struct pattern p = {MPI_BYTE, rank * bytes, bytes};
	MPI_Datatype row, rows, block;
	long n;

	if (strcmp(name, "strided") == 0) {
		n = bytes / piece;
		p.begin = rank * piece;
		p.bytes = n * piece;
		MPI_Type_vector(n, piece, piece * size, MPI_BYTE, &p.type);
	} else if (strcmp(name, "matrix") == 0) {
		int grid[2] = {0, 0}, side = 1, all[2], mine[2], at[2];

		MPI_Dims_create(size, 2, grid);
		while (32L * side * side <= bytes * size)
			side *= 2;
		all[0] = all[1] = side;
		mine[0] = side / grid[0];
		mine[1] = side / grid[1];
		at[0] = rank / grid[1] * mine[0];
		at[1] = rank % grid[1] * mine[1];
		p.begin = 0;
		p.bytes = 8L * mine[0] * mine[1];
		MPI_Type_create_subarray(2, all, mine, at, MPI_ORDER_C, MPI_DOUBLE, &p.type);
	} else if (strcmp(name, "planes") == 0) {
		n = bytes / (piece * 16);
		p.begin = rank * piece;
		p.bytes = n * piece * 16;
		MPI_Type_contiguous(piece, MPI_BYTE, &row);
		MPI_Type_create_hvector(16, 1, piece * size, row, &rows);
		MPI_Type_create_resized(rows, 0, piece * size * 16, &block);
		MPI_Type_create_hvector(n, 1, piece * size * 16, block, &p.type);
	} else {
		return p;
	}
	MPI_Type_commit(&p.type);
	return p;
}

static int later(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return (d > 0) - (d < 0);
}

/* run returns the number of ranks that have not read what they have written. */
static int run(const char *file, const char *name, long piece, long bytes, int rounds, int report)
{
	struct pattern p = choose(name, piece, bytes);
	char *out = malloc(p.bytes), *in = malloc(p.bytes);
	double *wrote = malloc(rounds * sizeof(double)), *read = malloc(rounds * sizeof(double)), t;
	int k, n, bad = 0;
	long i;
	MPI_File f;
	MPI_Status st;

	for (k = 0; k <= rounds; k++) {
		for (i = 0; i < p.bytes; i++)
			out[i] = (char)(i * 7 + rank * 13 + k);
		memset(in, ~k, p.bytes);
		if (MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f))
			MPI_Abort(MPI_COMM_WORLD, 1);
		MPI_File_set_view(f, p.begin, MPI_BYTE, p.type, "native", MPI_INFO_NULL);
		MPI_Barrier(MPI_COMM_WORLD);
		t = MPI_Wtime();
		bad |= MPI_File_write_at_all(f, 0, out, p.bytes, MPI_BYTE, &st) != 0;
		t = MPI_Wtime() - t;
		MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		wrote[k ? k - 1 : 0] = t;
		MPI_File_sync(f);
		MPI_Barrier(MPI_COMM_WORLD);
		t = MPI_Wtime();
		bad |= MPI_File_read_at_all(f, 0, in, p.bytes, MPI_BYTE, &st) != 0;
		t = MPI_Wtime() - t;
		MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		read[k ? k - 1 : 0] = t;
		MPI_Get_count(&st, MPI_BYTE, &n);
		bad |= n != p.bytes || memcmp(in, out, p.bytes) != 0;
		MPI_File_close(&f);
	}
	qsort(wrote, rounds, sizeof(double), later);
	qsort(read, rounds, sizeof(double), later);
	MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0 && report)
		printf("%s %ld: write %.3f ms, read %.3f ms, %d ranks wrong\n", name, piece, wrote[rounds / 2] * 1e3, read[rounds / 2] * 1e3, bad);
	if (p.type != MPI_BYTE)
		MPI_Type_free(&p.type);
	free(out), free(in), free(wrote), free(read);
	return bad;
}

int main(int argc, char **argv)
{
	char file[300] = "";
	int bad = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc == 6) {
		bad = run(argv[1], argv[2], atol(argv[3]), (long)(atof(argv[4]) * (1 << 20)), atoi(argv[5]), 1);
		snprintf(file, sizeof file, "%s", argv[1]);
	} else {
		if (rank == 0)
			snprintf(file, sizeof file, "/tmp/muster-patterns-%d", (int)getpid());
		MPI_Bcast(file, sizeof file, MPI_CHAR, 0, MPI_COMM_WORLD);
		bad += run(file, "contiguous", 1, 100000, 2, 0);
		bad += run(file, "strided", 64, 200000, 2, 0);
		bad += run(file, "strided", 20000, 200000, 2, 0);
		bad += run(file, "matrix", 0, 100000, 2, 0);
		bad += run(file, "planes", 100, 100000, 2, 0);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		unlink(file);
		if (bad == 0)
			printf("No Errors\n");
	}
	MPI_Finalize();
	return bad != 0;
}
