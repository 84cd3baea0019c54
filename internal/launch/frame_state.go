package launch

// The frames about the state of ranks: how a rank ended, and the board rows of a host.
// Signals are encoded by name, because their numbers differ between systems.

import (
	"errors"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

func exitedBody(rank int, end ending) []byte {
	var w bodyWriter
	w.number(int64(rank))
	w.number(int64(end.code))
	name, lost := "", ""
	if end.signal != 0 {
		if name = signalName(end.signal); name == "" {
			end.err = errors.New("killed by " + end.signal.String())
		}
	}
	if end.err != nil {
		lost = end.err.Error()
	}
	w.text(name)
	w.text(lost)
	return w
}

func readExited(body []byte) (rank int, end ending, err error) {
	r := bodyReader{rest: body}
	rank, end.code = int(r.number()), int(r.number())
	name, lost := r.text(), r.text()
	if name != "" {
		if end.signal = signalNumber(name); end.signal == 0 {
			lost = "killed by " + name
		}
	}
	if lost != "" {
		end.err = errors.New(lost)
	}
	return rank, end, r.err()
}

func signalBody(sig syscall.Signal) []byte { return []byte(signalName(sig)) }

// readSignal returns 0 for a signal that this system does not have.
func readSignal(body []byte) syscall.Signal { return signalNumber(string(body)) }

func askRowsBody(number int64, threads bool) []byte {
	var w bodyWriter
	w.number(number)
	w.truth(threads)
	return w
}

func readAskRows(body []byte) (number int64, threads bool, err error) {
	r := bodyReader{rest: body}
	number, threads = r.number(), r.truth()
	return number, threads, r.err()
}

// rowsBody encodes rows. Times are encoded as ages, because the clocks of hosts differ.
func rowsBody(number int64, rows []rankRow, now int64) []byte {
	var w bodyWriter
	w.number(number)
	for _, r := range rows {
		w.number(int64(r.Rank))
		w.number(int64(r.State))
		w.number(int64(r.Progress))
		w.number(ageOf(r.Since, now))
		w.truth(r.Started)
		w.number(int64(r.process.pid))
		w.number(int64(r.process.letter))
		w.number(int64(r.process.cpu))
		w.number(r.resident)
		w.text(r.kernel)
		w.truth(r.counted)
		if r.counted {
			for _, n := range r.counters.Values() {
				w.number(int64(*n))
			}
		}
		if r.State != pmi.RowWaiting {
			continue
		}
		w.text(r.Wait.Op)
		w.text(r.Wait.Comm)
		w.number(int64(r.Wait.Peer))
		w.number(int64(r.Wait.Tag))
		w.number(int64(r.Wait.Context))
		w.truth(r.Wait.Sending)
		w.number(int64(r.Wait.Other))
	}
	return w
}

func readRows(body []byte, now int64) (number int64, rows []rankRow, err error) {
	r := bodyReader{rest: body}
	number = r.number()
	for len(r.rest) > 0 {
		row := rankRow{Row: pmi.Row{Rank: int(r.number()), State: pmi.RowState(r.number()), Progress: uint64(r.number()), Since: timeOf(r.number(), now), Started: r.truth()}}
		row.process = processState{int(r.number()), byte(r.number()), time.Duration(r.number())}
		row.PID = row.process.pid
		row.resident, row.kernel, row.counted = r.number(), r.text(), r.truth()
		if row.counted {
			for _, n := range row.counters.Values() {
				*n = uint64(r.number())
			}
		}
		if row.State == pmi.RowWaiting {
			row.Wait = pmi.WaitState{
				Op: r.text(), Comm: r.text(), Peer: int32(r.number()), Tag: int32(r.number()),
				Context: uint32(r.number()), Sending: r.truth(), Since: row.Since, Other: pmi.Unreceived(r.number()),
			}
		}
		rows = append(rows, row)
	}
	return number, rows, r.err()
}

// ageOf and timeOf convert times to ages and back; 0 is an unknown time.

func ageOf(since, now int64) int64 {
	if since == 0 {
		return -1
	}
	return max(0, now-since)
}

func timeOf(age, now int64) int64 {
	if age < 0 {
		return 0
	}
	return now - age
}

func (p pulse) body() []byte {
	var w bodyWriter
	w.number(int64(p.progress))
	w.number(int64(p.waiting))
	w.truth(p.moving)
	w.number(int64(p.noticed))
	return w
}

func readPulse(body []byte) (pulse, error) {
	r := bodyReader{rest: body}
	p := pulse{progress: uint64(r.number()), waiting: int(r.number()), moving: r.truth(), noticed: int(r.number())}
	return p, r.err()
}
