package pmi

// Launchers that Muster detects but does not support. Without an error the program would
// run N times as a world of one rank, unnoticed.

import (
	"fmt"
	"strconv"
)

// foreignLauncher describes a launcher by its environment variables.
type foreignLauncher struct {
	name  string
	rank  string   // set to the process's rank
	sizes []string // set to the number of processes, the most reliable first
	// within, if not empty, must be set too: it distinguishes a rank from a script that
	// merely runs inside an allocation.
	within string
	// instead completes "start it with ...".
	instead string
}

// The order matters: Open MPI's mpirun also sets PMIX_RANK, and srun --mpi=pmix the
// variables of Slurm, which include the size. A build with tag pmix joins before this
// table is used.
var foreignLaunchers = [...]foreignLauncher{
	{name: "Open MPI's mpirun", rank: "OMPI_COMM_WORLD_RANK", sizes: []string{"OMPI_COMM_WORLD_SIZE"},
		instead: "muster run, or build it with -tags pmix to join as it is"},
	{name: "Slurm's srun --mpi=pmix", rank: "SLURM_PROCID", sizes: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, within: envPMIxRank,
		instead: "srun --mpi=pmi2, or build it with -tags pmix to join as it is"},
	{name: "Slurm's srun", rank: "SLURM_PROCID", sizes: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, within: "SLURM_STEP_ID",
		instead: "srun --mpi=pmi2"},
	{name: "a PMIx launcher such as prterun", rank: envPMIxRank,
		instead: "muster run, or build it with -tags pmix to join as it is"},
	{name: "MVAPICH2's mpirun_rsh", rank: "MV2_COMM_WORLD_RANK", sizes: []string{"MV2_COMM_WORLD_SIZE"},
		instead: "muster run, or with mpiexec.hydra"},
	{name: "IBM's jsrun", rank: "JSM_NAMESPACE_RANK", sizes: []string{"JSM_NAMESPACE_SIZE"},
		instead: "muster run on the nodes of the allocation"},
	{name: "Flux", rank: "FLUX_TASK_RANK", sizes: []string{"FLUX_JOB_SIZE"},
		instead: "flux run -o pmi=simple"},
	{name: "Cray's PALS", rank: "PALS_RANKID", sizes: []string{"PALS_SIZE"},
		instead: "muster run on the nodes of the allocation"},
	{name: "a PMI launcher whose socket did not reach this process", rank: EnvRank, sizes: []string{EnvSize},
		instead: "muster run or mpiexec.hydra, and make any wrapper between them and the program preserve " + EnvFD + " and its descriptor"},
}

// findForeignLauncher returns an error under an unsupported launcher with several ranks,
// and nil if a world of one rank is correct.
func findForeignLauncher(getenv func(string) string) error {
	for _, l := range foreignLaunchers {
		rank, err := strconv.Atoi(getenv(l.rank))
		if err != nil || l.within != "" && getenv(l.within) == "" {
			continue
		}
		size := 0
		for _, name := range l.sizes {
			if size, err = strconv.Atoi(getenv(name)); err == nil {
				break
			}
		}
		if size == 1 {
			return nil
		}
		of := ""
		if size > 1 {
			of = fmt.Sprintf(" of %d", size)
		}
		return fmt.Errorf("pmi: %s started this process as rank %d%s (%s), with a protocol that this program does not support: "+
			"every process would run as a world of one; start it with %s, or unset %s to run a single process on purpose",
			l.name, rank, of, l.rank, l.instead, l.rank)
	}
	return nil
}
