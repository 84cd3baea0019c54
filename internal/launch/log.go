package launch

// The log of Output.Verbose: the steps of a job as records of log/slog, for users who
// look for the step that takes long or fails.

import (
	"log/slog"

	"github.com/muster-mpi/muster/internal/pmi"
)

// newLog returns a logger that writes whole lines to the launcher's stderr.
func newLog(verbose bool, to *sink) *slog.Logger {
	if !verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(logWriter{to}, nil))
}

type logWriter struct{ to *sink }

func (w logWriter) Write(line []byte) (int, error) {
	w.to.write([]byte("muster: "), line)
	return len(line), nil
}

// logEvent logs an event of the job.
func (j *job) logEvent(e event) {
	if !j.cfg.Output.Verbose {
		return
	}
	switch {
	case e.report != nil:
		j.logReport(e.report)
	case e.started:
		j.log.Info("rank started", "rank", e.rank, "host", j.backend.host(e.rank), "pid", e.pid)
	case e.exited:
		j.log.Info("rank exited", "rank", e.rank, "how", e.end.String())
	case e.sent:
		j.log.Info("job sent to the agents")
	case e.lost != "":
		j.log.Info("host lost", "host", j.cfg.Hosts[e.host].Name, "why", e.lost)
	case e.failed != nil:
		j.log.Info("start failed", "why", e.failed)
	case e.pmi.Unreachable:
		j.log.Info("rank cannot reach another", "rank", e.rank, "other", e.pmi.Peer)
	case e.pmi.Fence:
		j.log.Info("rank in a fence", "rank", e.rank)
	default:
		j.log.Info("rank joined or aborted", "rank", e.rank, "aborted", e.pmi.Phase == pmi.PhaseAborted)
	}
}

func (j *job) logReport(r *report) {
	for host := range r.ready.all() {
		j.log.Info("agent ready", "host", j.cfg.Hosts[host].Name)
	}
	for _, s := range r.started {
		for i, pid := range s.pids {
			j.log.Info("rank started", "rank", s.first+i, "host", j.backend.host(s.first+i), "pid", pid)
		}
	}
	for rank := range r.joined.all() {
		j.log.Info("rank joined", "rank", rank)
	}
	for rank := range r.fenced.all() {
		j.log.Info("rank in a fence", "rank", rank)
	}
	for rank := range r.left.all() {
		j.log.Info("rank exited", "rank", rank, "how", ending{}.String())
	}
}
