package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var metricName = regexp.MustCompile(`muster_[a-z_]+`)

// dashboard is the part of grafana.json that is checked.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("grafana.json")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil || len(d.Panels) == 0 {
		t.Fatalf("%d panels, %v", len(d.Panels), err)
	}
	return d
}

// TestDashboardShowsEveryMetric compares the expressions with the metrics that muster serves.
func TestDashboardShowsEveryMetric(t *testing.T) {
	code, err := os.ReadFile("../../cmd/muster/run_metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	served, shown := map[string]bool{}, map[string]bool{}
	for _, name := range metricName.FindAllString(string(code), -1) {
		served[name] = true
	}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				shown[name] = true
				if !served[name] {
					t.Errorf("panel %q: muster does not serve %s", p.Title, name)
				}
			}
		}
	}
	for name := range served {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// TestPrometheusLoads starts a Prometheus with the configuration, lets it scrape samples of the
// metrics, and evaluates every expression of the dashboard.
func TestPrometheusLoads(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no Prometheus: Debian package prometheus")
	}
	job := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"muster_rank_up", "muster_messages_sent_total", "muster_wait_seconds_total"} {
			fmt.Fprintf(w, "%s{rank=\"0\",host=\"h\"} %d\n", name, time.Now().Unix()%1000)
		}
	}))
	defer job.Close()
	config, err := os.ReadFile("prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	text := strings.ReplaceAll(string(config), "localhost:9100", strings.TrimPrefix(job.URL, "http://"))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	const addr = "127.0.0.1:19090"
	server := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+addr)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	ask := func(expr string) string {
		response, err := http.Get("http://" + addr + "/api/v1/query?query=" + url.QueryEscape(expr))
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body) // what has arrived is compared
		return string(body)
	}
	for end := time.Now().Add(30 * time.Second); !strings.Contains(ask(`muster_rank_up{job="muster"}`), `"rank":"0"`); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing was scraped: %s", ask("up"))
		}
	}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			if got := ask(target.Expr); !strings.Contains(got, `"status":"success"`) {
				t.Errorf("panel %q: %s: %s", p.Title, target.Expr, got)
			}
		}
	}
}
