package pmi

import (
	"context"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/pmix"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestOpenUnderForeignLauncher(t *testing.T) {
	if pmix.Built {
		t.Skip("a program with PMIx joins some of these jobs; the builds without PMIx test them")
	}
	type vars = map[string]string
	for name, c := range map[string]struct {
		env  vars
		want []string // parts of the error; nil: a world of one
	}{
		"nothing at all":        {vars{}, nil},
		"Open MPI":              {vars{"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "PMIX_RANK": "2"}, []string{"Open MPI", "rank 2 of 4", "muster run", "-tags pmix"}},
		"Open MPI, one process": {vars{"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0"}, nil},
		"prterun":               {vars{"PMIX_RANK": "0", "PMIX_NAMESPACE": "x"}, []string{"PMIx", "rank 0", "-tags pmix"}},
		"srun --mpi=none":       {vars{"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "8"}, []string{"srun", "of 8", "--mpi=pmi2"}},
		"srun, old variables":   {vars{"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0"}, []string{"rank 3 of 8"}},
		"srun --mpi=pmix":       {vars{"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0", "PMIX_RANK": "1"}, []string{"srun --mpi=pmix", "rank 1 of 2", "--mpi=pmi2", "-tags pmix"}},
		"srun -n 1 --mpi=pmix":  {vars{"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_ID": "0", "PMIX_RANK": "0"}, nil},
		// A batch script has the job's variables but is not a rank.
		"inside sbatch":    {vars{"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "17"}, nil},
		"jsrun":            {vars{"JSM_NAMESPACE_RANK": "1", "JSM_NAMESPACE_SIZE": "6"}, []string{"jsrun", "of 6"}},
		"PMI without FD":   {vars{"PMI_RANK": "1", "PMI_SIZE": "4"}, []string{"socket", "PMI_FD"}},
		"PMI, one process": {vars{"PMI_RANK": "0", "PMI_SIZE": "1"}, nil},
	} {
		c0, err := Open(context.Background(), env(c.env), Terms{})
		if c.want == nil {
			if err != nil || c0.Size() != 1 || c0.Rank() != 0 || c0.LocalSize() != 1 {
				t.Errorf("%s must give a world of one: %v", name, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s must be refused", name)
			continue
		}
		for _, word := range c.want {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error must contain %q: %v", name, word, err)
			}
		}
	}
}

func TestOpenRejectsBadVariables(t *testing.T) {
	type vars = map[string]string
	for name, c := range map[string]struct {
		env  vars
		want string
	}{
		"FD is no number":     {vars{"PMI_FD": "x", "PMI_RANK": "0", "PMI_SIZE": "1"}, "PMI_FD"},
		"FD without a size":   {vars{"PMI_FD": "9", "PMI_RANK": "0"}, "PMI_SIZE"},
		"rank beyond size":    {vars{"PMI_FD": "9", "PMI_RANK": "4", "PMI_SIZE": "4"}, "PMI_RANK"},
		"FD not open":         {vars{"PMI_FD": "99999", "PMI_RANK": "0", "PMI_SIZE": "1"}, "unset PMI_FD"},
		"FD is no socket":     {vars{"PMI_FD": "2", "PMI_RANK": "0", "PMI_SIZE": "1"}, "unset PMI_FD"},
		"port without an id":  {vars{"PMI_PORT": "127.0.0.1:1"}, "PMI_ID"},
		"port nobody listens": {vars{"PMI_PORT": "127.0.0.1:1", "PMI_ID": "0"}, "127.0.0.1:1"},
	} {
		if _, err := Open(context.Background(), env(c.env), Terms{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error must name %s: %v", name, c.want, err)
		}
	}
}

// TestJobName checks that jobs which a process may join one after the other, as a rank of a
// launcher and without one, have different names.
func TestJobName(t *testing.T) {
	seen := map[string]bool{}
	for _, vars := range []map[string]string{
		{},
		{EnvFD: "3", EnvRank: "1", EnvSize: "2"},
		{envPort: "node1:7000", envID: "1"},
		{EnvRoot: "node1:7700", EnvKey: "0123456789abcdef", EnvStaticRank: "1", EnvStaticSize: "2"},
		{EnvRoot: "node1:7700", EnvKey: "123456789abcdef0", EnvStaticRank: "1", EnvStaticSize: "2"},
		{EnvRoot: "node1:7701", EnvKey: "123456789abcdef0", EnvStaticRank: "1", EnvStaticSize: "2"},
		{envPMIxRank: "1"},
	} {
		name := JobName(env(vars))
		if (name == "") != (len(vars) == 0) || seen[name] {
			t.Errorf("the job of %v is named %q; names so far: %v", vars, name, seen)
		}
		seen[name] = true
	}
}
