/* ranks: 2 */
/* Processes that a program starts (MPI-4.1 section 11.8), with their arguments, error codes and info
 * keys, and what connects them with those that have started them. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

#define CHECK(what)                                                                  \
	do {                                                                         \
		if (!(what)) {                                                       \
			printf("rank %d, line %d: %s\n", rank, __LINE__, #what);     \
			MPI_Abort(MPI_COMM_WORLD, 1);                                \
		}                                                                    \
	} while (0)

static int class_of(int code)
{
	int class;

	MPI_Error_class(code, &class);
	return class;
}

/* talk exchanges data with the other group, and disconnects from it. */
static void talk(MPI_Comm inter, int high, int all)
{
	MPI_Comm both;
	int sum, one = 1, i, n, got;
	MPI_Request reqs[2];
	MPI_Status statuses[2];

	MPI_Comm_remote_size(inter, &n);
	MPI_Comm_rank(inter, &i);
	if (i < n) {
		MPI_Isend(&i, 1, MPI_INT, i, 3, inter, &reqs[0]);
		MPI_Irecv(&got, 1, MPI_INT, i, 3, inter, &reqs[1]);
		MPI_Waitall(2, reqs, statuses);
		CHECK(got == i);
	}
	MPI_Intercomm_merge(inter, high, &both);
	for (i = 0; i < 200; i++) { /* enough for the direct path of short messages */
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
		CHECK(sum == all);
		MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 4, &got, 1, MPI_INT, (rank + size - 1) % size, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(got == i);
	}
	MPI_Comm_disconnect(&both);
	CHECK(both == MPI_COMM_NULL);
	MPI_Comm_disconnect(&inter);
	CHECK(inter == MPI_COMM_NULL);
}

/* child checks the arguments: what it is for, its MPI_APPNUM, its working directory. */
static void child(MPI_Comm parent, int argc, char **argv)
{
	MPI_Comm again, far;
	char name[MPI_MAX_OBJECT_NAME], dir[4096];
	int *number, flag, n;

	MPI_Comm_get_parent(&again);
	CHECK(again == parent);
	MPI_Comm_get_name(parent, name, &n);
	CHECK(strcmp(name, "MPI_COMM_PARENT") == 0);
	CHECK(argc >= 3);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
	CHECK(flag && *number == atoi(argv[2]));
	if (argc > 3) {
		CHECK(getcwd(dir, sizeof dir) != NULL && strcmp(dir, argv[3]) == 0);
	}
	if (strcmp(argv[1], "words") == 0) {
		CHECK(argc == 3);
	} else if (strcmp(argv[1], "far away") == 0) {
		MPI_Intercomm_create(MPI_COMM_WORLD, 0, parent, 0, 17, &far);
		talk(far, 1, 4);
		MPI_Comm_disconnect(&parent);
	} else {
		talk(parent, 1, atoi(argv[1]));
	}
	if (strcmp(argv[1], "words") == 0)
		MPI_Comm_disconnect(&parent);
	MPI_Comm_get_parent(&again);
	CHECK(again == MPI_COMM_NULL);
}

/* spawn_on_all starts processes from all ranks; only the arguments of the root count. */
static void spawn_on_all(char *prog)
{
	MPI_Comm inter;
	char *args[] = {"4", "0", NULL};
	int codes[2] = {-1, -1}, root = size - 1, n;

	if (rank == root)
		MPI_Comm_spawn(prog, args, 2, MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter, codes);
	else
		MPI_Comm_spawn(NULL, MPI_ARGV_NULL, 2, MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter, codes);
	CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
	MPI_Comm_remote_size(inter, &n);
	CHECK(n == 2);
	talk(inter, 0, 4);
}

/* spawn_several starts processes in two folders, fewer than the most, and looks for one program. */
static void spawn_several(char *prog)
{
	MPI_Comm inter;
	MPI_Info infos[2];
	char here[4096], folder[4096], *slash;
	char *commands[] = {prog, prog}, *first[] = {"5", "0", "/", NULL}, *second[] = {"5", "1", here, NULL}, **args[] = {first, second};
	int most[] = {3, 2}, codes[5], i;

	CHECK(getcwd(here, sizeof here) != NULL);
	strcpy(folder, prog);
	slash = strrchr(folder, '/');
	CHECK(slash != NULL);
	*slash = 0;
	commands[1] = slash + 1;
	MPI_Info_create(&infos[0]);
	MPI_Info_set(infos[0], "wdir", "/");
	MPI_Info_set(infos[0], "soft", "0,5,-1:2,9:7:-1");
	MPI_Info_create(&infos[1]);
	MPI_Info_set(infos[1], "path", folder);
	MPI_Info_set(infos[1], "wdir", ".");
	MPI_Info_set(infos[1], "soft", "7:1:-6");
	for (i = 0; i < 5; i++)
		codes[i] = -1;
	MPI_Comm_spawn_multiple(2, commands, args, most, infos, 0, MPI_COMM_WORLD, &inter, codes);
	for (i = 0; i < 5; i++)
		CHECK(class_of(codes[i]) == (i == 2 || i == 4 ? MPI_ERR_SPAWN : MPI_SUCCESS));
	MPI_Info_free(&infos[0]);
	MPI_Info_free(&infos[1]);
	talk(inter, 0, 5);
}

/* spawn_from_one starts a process from rank 0 alone, and connects it with both. */
static void spawn_from_one(char *prog)
{
	MPI_Comm inter = MPI_COMM_NULL, far;
	char *args[] = {"far away", "0", NULL};

	if (rank == 0)
		MPI_Comm_spawn(prog, args, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
	MPI_Intercomm_create(MPI_COMM_WORLD, 0, inter, 0, 17, &far);
	talk(far, 0, 4);
	if (rank == 0)
		MPI_Comm_disconnect(&inter);
}

/* fail_to_spawn gets errors on all ranks. */
static void fail_to_spawn(char *prog)
{
	MPI_Comm inter = MPI_COMM_NULL;
	MPI_Info info;
	int codes[3], code, i;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	code = MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
	CHECK(class_of(code) == MPI_ERR_SPAWN);
	for (i = 0; i < 3; i++)
		CHECK(class_of(codes[i]) == MPI_ERR_SPAWN);
	code = MPI_Comm_spawn(prog, MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
	CHECK(class_of(code) == (rank == 0 ? MPI_ERR_ARG : MPI_ERR_SPAWN));
	MPI_Info_create(&info);
	MPI_Info_set(info, "soft", "1,two");
	code = MPI_Comm_spawn(prog, MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
	CHECK(class_of(code) == (rank == 0 ? MPI_ERR_INFO_VALUE : MPI_ERR_SPAWN));
	MPI_Info_free(&info);
	MPI_Info_create(&info);
	MPI_Info_set(info, "host", "no-such-host");
	code = MPI_Comm_spawn(prog, MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
	CHECK(class_of(code) == MPI_ERR_SPAWN);
	MPI_Info_free(&info);
	code = MPI_Comm_spawn(prog, MPI_ARGV_NULL, 1, MPI_INFO_NULL, size, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
	CHECK(class_of(code) == MPI_ERR_ROOT);
	CHECK(inter == MPI_COMM_NULL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	MPI_Comm parent;
	int *number, flag;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL) {
		child(parent, argc, argv);
		MPI_Finalize();
		return 0;
	}
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &number, &flag);
	CHECK(!flag || *number > size);
	spawn_on_all(argv[0]);
	spawn_several(argv[0]);
	spawn_from_one(argv[0]);
	fail_to_spawn(argv[0]);
	MPI_Finalize();
	if (rank == 0)
		printf("No Errors\n");
	return 0;
}
