/* ranks: 3 */
/* Ports, names of services and sockets, at which groups of processes meet (MPI-4.1 sections 11.9 and
 * 11.10.4): rank 0 and the others here. */

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int rank;
static MPI_Comm group;

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

static void talk(MPI_Comm inter, int all)
{
	MPI_Comm both;
	int sum, one = 1;

	MPI_Intercomm_merge(inter, rank != 0, &both);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
	CHECK(sum == all);
	MPI_Comm_free(&both);
	MPI_Comm_disconnect(&inter);
}

/* accept_and_connect connects the groups at a port with the name of a service. */
static void accept_and_connect(void)
{
	MPI_Comm inter;
	char port[MPI_MAX_PORT_NAME] = "";

	if (rank == 0) {
		MPI_Open_port(MPI_INFO_NULL, port);
		CHECK(port[0] != 0 && strlen(port) < MPI_MAX_PORT_NAME);
		MPI_Publish_name("a service", MPI_INFO_NULL, port);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Comm_accept(port, MPI_INFO_NULL, 0, group, &inter);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 2) /* rank 1 of the group, the root */
			MPI_Lookup_name("a service", MPI_INFO_NULL, port);
		MPI_Comm_connect(port, MPI_INFO_NULL, 1, group, &inter);
	}
	talk(inter, 3);
	if (rank == 0) {
		MPI_Unpublish_name("a service", MPI_INFO_NULL, port);
		MPI_Close_port(port);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* fail calls the functions with names that do not exist. */
static void fail(void)
{
	MPI_Comm inter = MPI_COMM_NULL;
	MPI_Info info;
	char port[MPI_MAX_PORT_NAME], closed[MPI_MAX_PORT_NAME];

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
	CHECK(class_of(MPI_Lookup_name("no service", MPI_INFO_NULL, port)) == MPI_ERR_NAME);
	CHECK(class_of(MPI_Unpublish_name("no service", MPI_INFO_NULL, "a port")) == MPI_ERR_SERVICE);
	CHECK(class_of(MPI_Comm_connect("a port", MPI_INFO_NULL, 0, group, &inter)) == MPI_ERR_PORT);
	CHECK(class_of(MPI_Comm_accept("a port", MPI_INFO_NULL, 0, group, &inter)) == MPI_ERR_PORT);
	CHECK(class_of(MPI_Close_port("a port")) == MPI_ERR_PORT);
	MPI_Open_port(MPI_INFO_NULL, closed);
	MPI_Close_port(closed);
	CHECK(class_of(MPI_Comm_connect(closed, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
	if (rank == 0) {
		MPI_Open_port(MPI_INFO_NULL, port);
		CHECK(MPI_Publish_name("twice", MPI_INFO_NULL, port) == MPI_SUCCESS);
		CHECK(class_of(MPI_Publish_name("twice", MPI_INFO_NULL, port)) == MPI_ERR_SERVICE);
		MPI_Info_create(&info);
		MPI_Info_set(info, "timeout", "1"); /* nobody accepts */
		CHECK(class_of(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
		MPI_Info_free(&info);
		MPI_Close_port(port);
	}
	CHECK(inter == MPI_COMM_NULL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* join connects ranks 0 and 1 by a socket, on which other data follows. */
static void join(void)
{
	struct sockaddr_un addr;
	MPI_Comm inter;
	int fd, server = -1, n;
	char word[6] = "hello";

	if (rank > 1)
		return;
	memset(&addr, 0, sizeof addr);
	addr.sun_family = AF_UNIX;
	if (rank == 0) {
		server = socket(AF_UNIX, SOCK_STREAM, 0);
		snprintf(addr.sun_path + 1, sizeof addr.sun_path - 1, "join-%d", (int)getpid());
		CHECK(bind(server, (struct sockaddr *)&addr, sizeof addr) == 0 && listen(server, 1) == 0);
		MPI_Send(&addr, sizeof addr, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		fd = accept(server, NULL, NULL);
		CHECK(fd >= 0);
	} else {
		MPI_Recv(&addr, sizeof addr, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		CHECK(connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0);
	}
	MPI_Comm_join(fd, &inter);
	MPI_Comm_remote_size(inter, &n);
	CHECK(n == 1);
	if (rank == 0) {
		CHECK(write(fd, word, sizeof word) == sizeof word);
	} else {
		memset(word, 0, sizeof word);
		CHECK(read(fd, word, sizeof word) == sizeof word && strcmp(word, "hello") == 0);
	}
	talk(inter, 2);
	close(fd);
	close(server);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &group);
	accept_and_connect();
	fail();
	join();
	MPI_Finalize();
	if (rank == 0)
		printf("No Errors\n");
	return 0;
}
