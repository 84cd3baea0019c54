/* Rank 2 of 4 dies. The others get an error, agree, and continue without it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int ok, const char *what) {
    if (!ok) {
        printf("failed: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

int main(int argc, char **argv) {
    int rank, size, class, flag, one = 1, sum = 0, code;
    void *memory;
    MPI_Comm left;
    MPI_Group acked;
    MPI_Win win;
    MPI_Request request;
    /* MPICH 4.0 does not declare it. */
    int (*is_revoked)(MPI_Comm, int *) = (int (*)(MPI_Comm, int *))dlsym(RTLD_DEFAULT, "MPIX_Comm_is_revoked");
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    must(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == 0 && sum == 4, "Allreduce of all");
    must(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win) == 0, "Win_allocate of all");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    /* Whoever is still in Allreduce when a rank dies may get an error. */
    if (rank != 2)
        MPI_Send(&one, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 2 && i < 3; i++)
        MPI_Recv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 2)
        raise(SIGKILL);

    code = MPI_Recv(&sum, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    must(class == MPIX_ERR_PROC_FAILED, "class of Recv from the failed rank");

    must(is_revoked && is_revoked(MPI_COMM_WORLD, &flag) == 0 && !flag, "the communicator is not revoked yet");
    flag = rank == 0 ? 6 : 3;
    code = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
    MPI_Error_class(code, &class);
    must(class == MPIX_ERR_PROC_FAILED && flag == 2, "Agree before the failure is acknowledged");
    MPIX_Comm_failure_ack(MPI_COMM_WORLD);
    MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &acked);
    MPI_Group_size(acked, &size);
    must(size == 1, "one acknowledged rank");
    must(MPIX_Comm_agree(MPI_COMM_WORLD, &flag) == 0, "Agree after the failure was acknowledged");

    must(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request) == 0, "Iallreduce is started");
    MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
    must(class == MPIX_ERR_PROC_FAILED, "class of Iallreduce");
    MPI_Error_class(MPI_Win_fence(0, win), &class);
    must(class == MPIX_ERR_PROC_FAILED, "class of Win_fence");
    must(MPI_Win_free(&win) == 0 && win == MPI_WIN_NULL, "Win_free");

    must(MPIX_Comm_revoke(MPI_COMM_WORLD) == 0, "Revoke");
    must(is_revoked(MPI_COMM_WORLD, &flag) == 0 && flag, "the communicator is revoked");
    code = MPI_Barrier(MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    must(class == MPIX_ERR_REVOKED || class == MPIX_ERR_PROC_FAILED, "class of Barrier on the revoked communicator");
    must(MPIX_Comm_shrink(MPI_COMM_WORLD, &left) == 0, "Shrink");
    MPI_Comm_size(left, &size);
    must(size == 3, "size without the failed rank");
    must(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left) == 0 && sum == 3, "Allreduce of the others");
    MPI_Comm_rank(left, &rank);
    if (rank == 0)
        printf("No Errors\n");
    MPI_Group_free(&acked);
    MPI_Comm_free(&left);
    MPI_Finalize();
    return 0;
}
