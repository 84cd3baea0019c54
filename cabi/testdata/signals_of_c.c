/* ranks: 2 */
/* Signal handlers of the program remain, whether installed before or after MPI_Init, and a
 * call of MPI that a signal interrupts goes on. */

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t usr1, alarms;

static void count(int signal)
{
	if (signal == SIGUSR1)
		usr1++;
	else
		alarms++;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = count}; /* without SA_RESTART */
	struct itimerval timer = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
	int rank, i, in = -1, faults = 0;

	sigaction(SIGUSR1, &action, NULL);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	sigaction(SIGALRM, &action, NULL);
	raise(SIGUSR1);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (i = 0; i < 20; i++) {
		if (rank == 0) {
			double until = MPI_Wtime() + 0.005; /* nanosleep would return at each signal */
			while (MPI_Wtime() < until)
				;
		}
		MPI_Sendrecv(&i, 1, MPI_INT, 1 - rank, 0, &in, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		faults += in != i;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	MPI_Finalize();
	if (usr1 != 1 || alarms == 0)
		faults++;
	if (rank == 0 && faults == 0)
		printf(" No Errors\n");
	else if (faults != 0)
		printf("rank %d: %d faults, %d and %d signals\n", rank, faults, (int)usr1, (int)alarms);
	return faults != 0;
}
