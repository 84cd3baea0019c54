//go:build !windows

package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/pmi"
)

func TestMetricsText(t *testing.T) {
	var text strings.Builder
	writeMetrics(&text, []launch.RankMetrics{
		{Rank: 0, Host: `a"b\`, Running: true, Joined: true, Resident: 4096, CPU: 1500 * time.Millisecond, Counters: pmi.Metrics{MessagesSent: 5, BytesSent: 1 << 40, Waiting: 2.5e9, Retransmitted: 3, Memory: 7}},
		{Rank: 1, Host: "c"},
	})
	for _, want := range []string{
		"# TYPE muster_messages_sent_total counter\nmuster_messages_sent_total{rank=\"0\",host=\"a\\\"b\\\\\"} 5\n# HELP",
		"muster_rank_up{rank=\"0\",host=\"a\\\"b\\\\\"} 1\nmuster_rank_up{rank=\"1\",host=\"c\"} 0\n",
		"muster_wait_seconds_total{rank=\"0\",host=\"a\\\"b\\\\\"} 2.5\n", "muster_sent_bytes_total{rank=\"0\",host=\"a\\\"b\\\\\"} 1.099511627776e+12\n",
		"} 1.5\n", "muster_resident_memory_bytes{rank=\"0\",host=\"a\\\"b\\\\\"} 4096\n", "# TYPE muster_communication_memory_bytes gauge\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text must contain %q:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "memory_bytes{rank=\"1\"") {
		t.Errorf("what is not known of rank 1 must be left out:\n%s", text.String())
	}
}

// A running job is scraped while its ranks exchange messages, on one host and on two.
func TestMetricsOfRunningJob(t *testing.T) {
	for name, on := range map[string][]string{"one host": {"-n", "2"}, "two hosts": {"--hosts", "h1,h2", "--rsh", here}} {
		args := append([]string{"run", "--metrics", "127.0.0.1:0", "--timeout", "2m", "--env", asRank + "=" + rankTalks}, on...)
		cmd := exec.Command(selfPath(t), append(args, selfPath(t))...)
		cmd.Env = append(os.Environ(), asMuster+"=1")
		scrapeUntil(t, name, cmd)
	}
}

// scrapeUntil starts a job and reads its metrics until both ranks have sent messages.
func scrapeUntil(t *testing.T, name string, cmd *exec.Cmd) {
	t.Helper()
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill() // the ranks die with it
	line, err := bufio.NewReader(errs).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "muster: metrics at ")
	if err != nil || !ok {
		t.Fatalf("%s: the address must be printed: %q, %v", name, line, err)
	}
	go io.Copy(io.Discard, errs)
	text := ""
	waitFor(t, 50*time.Millisecond, name+": messages of both ranks in the metrics", func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		text = string(body)
		return sent(text, "0") && sent(text, "1")
	})
	if strings.Count(text, "\nmuster_resident_memory_bytes{") != 2 || strings.Count(text, "\nmuster_rank_up{") != 2 {
		t.Errorf("%s: the memory of both ranks must be known:\n%s", name, text)
	}
}

func sent(text, rank string) bool {
	_, rest, found := strings.Cut(text, "\nmuster_messages_sent_total{rank=\""+rank+"\"")
	_, value, _ := strings.Cut(rest, "} ")
	return found && !strings.HasPrefix(value, "0\n")
}

func TestMetricsAddressInUse(t *testing.T) {
	if got := muster(t, t.TempDir(), "run", "-n", "1", "--metrics", "nowhere", "true"); got.status != 2 || !strings.Contains(got.err, "such as localhost:9100") {
		t.Errorf("a bad address must be reported: %+v", got)
	}
}
