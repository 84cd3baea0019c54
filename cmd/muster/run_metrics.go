package main

// muster run --metrics: the counters of a running job, in the text format of Prometheus.

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/launch"
)

// metricsEvery is how often ranks make their counters available.
const metricsEvery = time.Second

// serveMetrics sets the job up to publish its counters at an address. The returned
// function ends the server.
func serveMetrics(addr string, cfg *launch.Config) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--metrics %s: %w; give an address of this host and a free port, such as localhost:9100", addr, err)
	}
	variable := "MUSTER_METRICS=" + metricsEvery.String()
	cfg.ExtraEnv = append(cfg.ExtraEnv, variable)
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second}
	cfg.Metrics = func(read func() []launch.RankMetrics) {
		server.Handler = metricsHandler(read)
		if !cfg.Output.Quiet {
			fmt.Fprintf(cfg.Output.Stderr, "muster: metrics at http://%s/metrics\n", listener.Addr())
		}
		go server.Serve(listener) // ends with Close
	}
	return func() {
		server.Close()
		listener.Close() // if the job has not begun
	}, nil
}

func metricsHandler(read func() []launch.RankMetrics) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		writeMetrics(w, read())
	})
	return mux
}

// waitingCall is the metric with a label for the call.
const waitingCall = "muster_waiting_call_seconds"

// timeRead is the metric from which top has the time of a sample: muster run serves one again
// to clients that ask often.
const timeRead = "muster_read_time_seconds"

// metric is a family of samples, one for each rank.
type metric struct {
	name, kind, help string
	of               func(m *launch.RankMetrics) (value float64, known bool)
}

func metrics() []metric {
	counter := func(f func(m *launch.RankMetrics) uint64) func(*launch.RankMetrics) (float64, bool) {
		return func(m *launch.RankMetrics) (float64, bool) { return float64(f(m)), m.Joined }
	}
	return []metric{
		{"muster_rank_up", "gauge", "1 if the process of the rank runs.", func(m *launch.RankMetrics) (float64, bool) {
			if m.Running {
				return 1, true
			}
			return 0, true
		}},
		{timeRead, "gauge", "Unix time at which muster run read the metrics of the rank.", func(m *launch.RankMetrics) (float64, bool) {
			return float64(m.Read.UnixMicro()) / 1e6, !m.Read.IsZero()
		}},
		{"muster_messages_sent_total", "counter", "Messages sent, including those of collectives.", counter(func(m *launch.RankMetrics) uint64 { return m.Counters.MessagesSent })},
		{"muster_messages_received_total", "counter", "Messages received.", counter(func(m *launch.RankMetrics) uint64 { return m.Counters.MessagesReceived })},
		{"muster_sent_bytes_total", "counter", "Bytes of the messages sent.", counter(func(m *launch.RankMetrics) uint64 { return m.Counters.BytesSent })},
		{"muster_received_bytes_total", "counter", "Bytes of the messages received.", counter(func(m *launch.RankMetrics) uint64 { return m.Counters.BytesReceived })},
		{"muster_wait_seconds_total", "counter", "Time in calls that waited long enough to yield their core, including one that is under way.", func(m *launch.RankMetrics) (float64, bool) {
			return time.Duration(m.Counters.Waiting).Seconds(), m.Joined
		}},
		{waitingCall, "gauge", "Time since the rank began to wait in the call that it waits in now.", func(m *launch.RankMetrics) (float64, bool) { return m.Since.Seconds(), m.Call != "" }},
		{"muster_retransmits_total", "counter", "Datagrams and TCP segments sent again.", counter(func(m *launch.RankMetrics) uint64 { return m.Counters.Retransmitted })},
		{"muster_communication_memory_bytes", "gauge", "Memory that the library uses for communication.", counter(func(m *launch.RankMetrics) uint64 { return m.Counters.Memory })},
		{"muster_resident_memory_bytes", "gauge", "Resident memory of the process.", func(m *launch.RankMetrics) (float64, bool) { return float64(m.Resident), m.Resident > 0 }},
		{"muster_cpu_seconds_total", "counter", "Processor time of the process.", func(m *launch.RankMetrics) (float64, bool) { return m.CPU.Seconds(), m.Resident > 0 }},
	}
}

// writeMetrics writes all samples in the text format of Prometheus, version 0.0.4.
func writeMetrics(w io.Writer, ranks []launch.RankMetrics) {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	for _, m := range metrics() {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for i := range ranks {
			v, known := m.of(&ranks[i])
			if !known {
				continue
			}
			call := ""
			if m.name == waitingCall {
				call = `,call="` + escape.Replace(ranks[i].Call) + `"`
			}
			fmt.Fprintf(w, "%s{rank=\"%d\",host=\"%s\"%s} %s\n", m.name, ranks[i].Rank, escape.Replace(ranks[i].Host), call, strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
}
