package launch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/internal/pmi"
)

// jobEnv is the environment that all ranks of a host share. Variables of a launcher
// outside, as when `muster run` itself runs under srun, would tell the ranks a
// wrong place and are left out.
func jobEnv(base []string, size, local, gomaxprocs int, jobID string, board, life bool) []string {
	env := make([]string, 0, len(base)+8)
	last := map[string]int{} // of two values the later one counts, as with os/exec
	for i, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	userProcs := false
	for i, kv := range base {
		name, value, _ := strings.Cut(kv, "=")
		isProcs := name == "GOMAXPROCS"
		if last[name] != i || placeVariable(name) || isProcs && value == "" {
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
	if life {
		env = append(env, pmi.EnvLifeline+"="+strconv.Itoa(lifeFD))
	}
	// Each rank would otherwise take the whole machine for itself.
	if !userProcs {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(gomaxprocs))
	}
	return env
}

func placeVariable(name string) bool {
	switch name {
	case pmi.EnvFD, pmi.EnvRank, pmi.EnvSize, pmi.EnvLocalRank, pmi.EnvLocalSize, pmi.EnvJob, pmi.EnvBoard, pmi.EnvLifeline,
		"PMI_PORT", "PMI_ID", "PMI_SPAWNED", "PMI_APPNUM",
		"MUSTER_RANK", "MUSTER_SIZE", "MUSTER_ROOT":
		return true
	}
	return false
}

// travels reports whether a variable of the launcher is set on other hosts too. The
// others describe the machine or the session there.
func travels(name string) bool {
	return strings.HasPrefix(name, "MUSTER_") || strings.HasPrefix(name, "GO") || name == "PATH" || name == "LD_LIBRARY_PATH"
}

// travelEnv picks the variables for ranks on other hosts, with what the user adds.
func travelEnv(env, extra []string) []string {
	var out []string
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); travels(name) && !placeVariable(name) {
			out = append(out, kv)
		}
	}
	return append(out, extra...)
}

// rankEnv adds what differs.
func rankEnv(job []string, rank, local int) []string {
	return append(slices.Clip(job), pmi.EnvRank+"="+strconv.Itoa(rank), pmi.EnvLocalRank+"="+strconv.Itoa(local))
}
