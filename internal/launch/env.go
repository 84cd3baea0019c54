package launch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/internal/pmi"
)

// jobEnv returns the environment that all ranks of a host share. It omits the variables
// of an outer launcher, for example when `muster run` itself runs under srun, because
// they would give the ranks a wrong rank and size.
func jobEnv(base []string, size, local, gomaxprocs int, jobID string, board, lifeline bool) []string {
	env := make([]string, 0, len(base)+8)
	last := map[string]int{} // the last of several values applies, as in os/exec
	for i, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	userProcs := false
	for i, kv := range base {
		name, value, _ := strings.Cut(kv, "=")
		isProcs := name == "GOMAXPROCS"
		if last[name] != i || launcherVariable(name) || isProcs && value == "" {
			continue
		}
		userProcs = userProcs || isProcs
		env = append(env, kv)
	}
	env = append(env,
		pmi.EnvFD+"="+strconv.Itoa(pmiFD),
		pmi.EnvSize+"="+strconv.Itoa(size),
		pmi.EnvLocalSize+"="+strconv.Itoa(local),
		pmi.EnvJob+"="+jobID)
	if board {
		env = append(env, pmi.EnvBoard+"="+strconv.Itoa(boardFD))
	}
	if lifeline {
		env = append(env, pmi.EnvLifeline+"="+strconv.Itoa(lifelineFD))
	}
	// Otherwise each rank would use the whole machine.
	if !userProcs {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(gomaxprocs))
	}
	return env
}

func launcherVariable(name string) bool {
	switch name {
	case pmi.EnvFD, pmi.EnvRank, pmi.EnvSize, pmi.EnvLocalRank, pmi.EnvLocalSize, pmi.EnvJob, pmi.EnvBoard, pmi.EnvLifeline,
		"PMI_PORT", "PMI_ID", "PMI_SPAWNED", "PMI_APPNUM",
		"MUSTER_RANK", "MUSTER_SIZE", "MUSTER_ROOT":
		return true
	}
	return false
}

// exported reports whether a variable of the launcher is also set on other hosts. The
// other variables describe the local machine or session.
func exported(name string) bool {
	return strings.HasPrefix(name, "MUSTER_") || strings.HasPrefix(name, "GO") || name == "PATH" || name == "LD_LIBRARY_PATH"
}

// exportEnv returns the variables for ranks on other hosts, including extra.
func exportEnv(env, extra []string) []string {
	var out []string
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); exported(name) && !launcherVariable(name) {
			out = append(out, kv)
		}
	}
	return append(out, extra...)
}

// rankEnv replaces the contents of env by the environment of a rank: the variables of the job,
// those of its program, which replace them, and those that differ between ranks.
func rankEnv(env, job, program []string, rank, local int) []string {
	env = append(env[:0], job...)
	if len(program) > 0 {
		env = slices.DeleteFunc(env, func(kv string) bool { return hasName(program, nameOf(kv)) })
		for i, kv := range program {
			if !launcherVariable(nameOf(kv)) && !hasName(program[i+1:], nameOf(kv)) {
				env = append(env, kv)
			}
		}
	}
	return append(env, pmi.EnvRank+"="+strconv.Itoa(rank), pmi.EnvLocalRank+"="+strconv.Itoa(local))
}

func nameOf(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

func hasName(env []string, name string) bool {
	return !launcherVariable(name) && slices.ContainsFunc(env, func(kv string) bool { return nameOf(kv) == name })
}
