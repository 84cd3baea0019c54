/* Rank 2 of 4 dies. The others get an error, agree, and continue without it. */
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
    MPI_Comm left;
    MPI_Group acked;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    must(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == 0 && sum == 4, "Allreduce of all");
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

    flag = rank == 0 ? 6 : 3;
    code = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
    MPI_Error_class(code, &class);
    must(class == MPIX_ERR_PROC_FAILED && flag == 2, "Agree before the failure is acknowledged");
    MPIX_Comm_failure_ack(MPI_COMM_WORLD);
    MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &acked);
    MPI_Group_size(acked, &size);
    must(size == 1, "one acknowledged rank");
    must(MPIX_Comm_agree(MPI_COMM_WORLD, &flag) == 0, "Agree after the failure was acknowledged");

    must(MPIX_Comm_revoke(MPI_COMM_WORLD) == 0, "Revoke");
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
