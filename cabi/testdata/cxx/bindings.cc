/* ranks: 2 */
/* only: openmpi */
/* The C++ bindings of Open MPI 4: operations, attributes and error handlers in C++. */

#include <mpi.h>

#include <cstdio>

static int handled;

static void sum(const void *in, void *inout, int n, const MPI::Datatype &type)
{
	for (int i = 0; i < n && type == MPI::INT; i++)
		static_cast<int *>(inout)[i] += static_cast<const int *>(in)[i];
}

static void handle(MPI::Comm &comm, int *code, ...)
{
	handled = *code == MPI::ERR_RANK ? comm.Get_rank() + 1 : -1;
}

static int copied(const MPI::Comm &, int, void *, void *in, void *out, bool &flag)
{
	*static_cast<void **>(out) = static_cast<char *>(in) + 1;
	flag = true;
	return MPI::SUCCESS;
}

int main(int argc, char **argv)
{
	int errors = 0, total = 0, got = -1;
	char cell[2];

	MPI::Init(argc, argv);
	int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size();

	MPI::Op op;
	op.Init(sum, true);
	MPI::COMM_WORLD.Allreduce(&rank, &got, 1, MPI::INT, op);
	errors += got != size * (size - 1) / 2;
	op.Free();

	int key = MPI::Comm::Create_keyval(copied, MPI::Comm::NULL_DELETE_FN, NULL);
	MPI::Intracomm first = MPI::COMM_WORLD.Dup();
	first.Set_attr(key, cell);
	MPI::Intracomm second = first.Dup();
	void *value = NULL;
	errors += !second.Get_attr(key, &value) || value != cell + 1;
	second.Free();

	MPI::Errhandler handler = MPI::Comm::Create_errhandler(handle);
	first.Set_errhandler(handler);
	first.Send(&rank, 1, MPI::INT, size, 0);
	errors += handled != rank + 1;
	handler.Free();
	first.Free();

	MPI::Status status;
	MPI::Request request = MPI::COMM_WORLD.Irecv(&got, 1, MPI::INT, MPI::ANY_SOURCE, MPI::ANY_TAG);
	MPI::COMM_WORLD.Send(&rank, 1, MPI::INT, 1 - rank, 3);
	request.Wait(status);
	errors += got != 1 - rank || status.Get_source() != 1 - rank || status.Get_tag() != 3 || status.Get_count(MPI::INT) != 1;

	MPI::COMM_WORLD.Reduce(&errors, &total, 1, MPI::INT, MPI::SUM, 0);
	if (rank == 0)
		std::puts(total == 0 ? "No Errors" : "errors");
	MPI::Finalize();
	return 0;
}
