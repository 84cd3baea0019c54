package groups

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/bench/results"
)

func TestMediansAndSpreadIgnoreFailedRuns(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		values []float64
		want   spread
	}{
		{"odd", []float64{3, 1, 2}, spread{2, 1, 3}},
		{"even", []float64{4, 1, 2, 3}, spread{2.5, 1, 4}},
		{"a failed run", []float64{nan, 7, nan}, spread{7, 7, 7}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%s: %v gives %v, want %v", c.name, c.values, got, c.want)
		}
	}
	if spreadOf([]float64{nan}).known() {
		t.Error("a run that failed became a figure")
	}
}

func TestRatiosByRound(t *testing.T) {
	// The machine is twice as slow in the second round and the better peer
	// failed in the last: ratios of medians would say something else.
	g := &group{name: "x", peers: []contender{openMPI, mpich}, lines: []line{{title: "8 B", size: 8, bound: 0.6}}}
	r := newRuns(g, Options{Rounds: 4})
	r.values[openMPI][0] = []float64{1, 2, 1, math.NaN()}
	r.values[mpich][0] = []float64{3, 6, 3, 0.1}
	r.values[muster][0] = []float64{0.5, 1, 0.7, 9}
	s := r.summary()
	l := s.lines[0]
	if l.better != openMPI || l.ratio != (spread{0.5, 0.5, 0.7}) || s.result(&l) != "met" {
		t.Errorf("against %s the ratio is %v, %s; want 0.5 (0.5 to 0.7) against Open MPI, met", l.better, l.ratio, s.result(&l))
	}
	g.largerBetter = true
	s = r.summary()
	if l := s.lines[0]; l.better != mpich || s.result(&l) != "within noise" {
		t.Errorf("where larger is better, the better peer is %s and the line is %s; want MPICH, within noise: one round of 90", l.better, s.result(&l))
	}
	r.values[muster][0][3] = math.NaN()
	s = r.summary()
	if l := s.lines[0]; s.result(&l) != "missed" {
		t.Errorf("all rounds miss, and the line is %s", s.result(&l))
	}
}

// A line may be compared with some of the peers only, and times have their p99.
func TestPeersOfLine(t *testing.T) {
	g := &group{name: "x", peers: []contender{openMPI, bareUDP}, quantity: quantity{unit: "us", metric: "m", scale: 1, shown: "µs"}, lines: []line{
		{title: "a", size: 8, bound: 1, peers: []contender{openMPI}}, {title: "b", size: 8, bound: 1, peers: []contender{bareUDP}},
	}}
	r := newRuns(g, Options{Rounds: 1, Statistic: "p50"})
	values, tails, err := r.figures([]byte(`{"size":8,"metric":"m","unit":"us","value":9,"p50":2,"p99":7}`))
	if err != nil || !slices.Equal(values, []float64{2, 2}) || !slices.Equal(tails, []float64{7, 7}) {
		t.Fatalf("figures %v and p99 %v, %v", values, tails, err)
	}
	for i, v := range values {
		r.values[muster][i], r.tails[muster][i] = []float64{v}, []float64{tails[i]}
		r.values[openMPI][i], r.values[bareUDP][i] = []float64{4}, []float64{1}
	}
	s := r.summary()
	if one, two := s.lines[0], s.lines[1]; one.ratio.mid != 0.5 || two.ratio.mid != 2 || one.better != openMPI || two.better != bareUDP {
		t.Errorf("the ratios are %v to %s and %v to %s", one.ratio, one.better, two.ratio, two.better)
	}
	if text := s.table().Markdown(); !strings.Contains(text, "| 2.00 (2.00–2.00) p99 7.00 | Open MPI |") {
		t.Errorf("the table is\n%s", text)
	}
}

// TestEncryptionAgainstPlainAndCipher computes what plain messages and the cipher allow
// together, of rates and of times.
func TestEncryptionAgainstPlainAndCipher(t *testing.T) {
	for name, c := range map[string]struct {
		plain, cipher, ours, together, ratio, toPlain float64
	}{
		"encrypt-bw":      {2000, 2000, 900, 1000, 0.9, 0.45},
		"encrypt-latency": {9.75, 0.25, 12, 10, 1.2, 12 / 9.75},
	} {
		chosen, err := selectGroups(Options{Only: name})
		if err != nil {
			t.Fatal(err)
		}
		g := chosen[0]
		if env := strings.Join(g.command(plain, binaries{}, hostSet{hosts: []string{"a", "b"}}).env, " "); strings.Contains(env, "MUSTER_ENCRYPT") {
			t.Errorf("%s: plain messages are measured with %s", name, env)
		}
		r := newRuns(g, Options{Rounds: 1, Statistic: "value"})
		for i := range g.lines {
			r.values[plain][i], r.values[gcm][i], r.values[muster][i] = []float64{c.plain}, []float64{c.cipher}, []float64{c.ours}
		}
		s := r.summary()
		both := s.lines[0]
		if math.Abs(both.together.mid-c.together) > 1e-9 || math.Abs(both.ratio.mid-c.ratio) > 1e-9 || math.Abs(both.toFirst.mid-c.toPlain) > 1e-9 {
			t.Errorf("%s: together %v, ratio %v, to plain %v; want %+v", name, both.together, both.ratio, both.toFirst, c)
		}
		if s.result(&both) != "met" {
			t.Errorf("%s: a ratio of %g is %s", name, c.ratio, s.result(&both))
		}
		if text := s.table().Text(); !strings.Contains(text, "AES-128-GCM") || !strings.Contains(text, "together, "+g.shown) || !strings.Contains(text, "relative to Muster, plain") {
			t.Errorf("%s prints\n%s", name, text)
		}
	}
}

func TestEarlierBuildReplacesPeers(t *testing.T) {
	chosen, err := selectGroups(Options{Only: "latency,bw", Before: "old/muster", Within: 0.03})
	if err != nil || len(chosen) != 2 {
		t.Fatalf("-only latency,bw selects %d groups, %v; want 2", len(chosen), err)
	}
	bin := binaries{before: "old/muster", muster: "new/muster"}
	for i, bound := range []float64{1.03, 0.97} {
		g := chosen[i]
		if !slices.Equal(g.peers, []contender{before}) || g.lines[0].bound != bound {
			t.Errorf("%s is compared with %v and bound %g; want the earlier build and %g", g.name, g.peers, g.lines[0].bound, bound)
		}
		old, ours := g.command(before, bin, hostSet{}).argv, g.command(muster, bin, hostSet{}).argv
		for k := range ours {
			if want := strings.ReplaceAll(ours[k], "new/", "old/"); old[k] != want {
				t.Errorf("%s: the earlier build gets %q where ours gets %q", g.name, old[k], ours[k])
			}
		}
	}
	if _, err := selectGroups(Options{Only: "latency,no-such-group"}); err == nil {
		t.Error("a group that does not exist is ignored in a list of groups")
	}
}

func TestFiguresFromOutput(t *testing.T) {
	g := &group{name: "latency", quantity: latencyMicros, lines: []line{{title: "8 B", size: 8, bound: 1}, {title: "1 KB", size: 1024, bound: 1}}}
	out := `starting
[0] {"size":1024,"metric":"latency","unit":"ns","value":900,"p50":800}
{"size":8,"metric":"latency","unit":"us","value":0.4,"p50":0.3}
{"size":8,"metric":"mpi/device","unit":"ratio","value":1.1}
`
	if got, err := g.figures([]byte(out), "p50"); err != nil || !slices.Equal(got, []float64{0.3, 0.8}) {
		t.Errorf("the p50 figures are %v, %v; want 0.3 and 0.8 us", got, err)
	}
	if got, err := g.figures([]byte(out), "value"); err != nil || !slices.Equal(got, []float64{0.4, 0.9}) {
		t.Errorf("figures are %v, %v; want 0.4 and 0.9 us", got, err)
	}
	for name, out := range map[string]string{
		"a size is missing": `{"size":8,"metric":"latency","unit":"us","value":0.4}`,
		"a foreign unit":    `{"size":8,"metric":"latency","unit":"furlong","value":0.4}`,
		"a broken line":     `{"size":8,`,
	} {
		if got, err := g.figures([]byte(out), "value"); err == nil {
			t.Errorf("%s: got %v and no error", name, got)
		}
	}
}

func TestEveryLineHasACommandAndABound(t *testing.T) {
	bin := binaries{openMPI: "peers-openmpi", mpich: "peers-mpich", bare: "ofi_bare", muster: "muster", musterOFI: "muster-ofi"}
	at := hostSet{hosts: []string{"a", "b", "c", "d"}, rails: 2, rsh: "run-on {host}", onHost: "onhost.sh"}
	for _, g := range plan() {
		if len(g.lines) == 0 || g.scale == 0 || g.shown == "" || (unitFactors[g.unit] == nil && !g.wallClock) {
			t.Errorf("the group %s is incomplete", g.name)
		}
		for _, c := range append(slices.Clone(g.peers), muster) {
			argv := strings.Join(g.command(c, bin, at).argv, " ")
			if c == bare || c == bareUDP || c == gcm || g.direct {
				continue // it starts and binds its processes itself
			}
			if !strings.Contains(argv, fmt.Sprintf("-n %d ", g.ranks)) {
				t.Errorf("%s of %s does not start %d ranks: %s", g.name, c, g.ranks, argv)
			}
			if bound := strings.Contains(argv, "bind-to core") || strings.Contains(argv, "--bind core"); bound != (g.ranks == 2 && g.over != hosts) {
				t.Errorf("%s of %s: two ranks of a machine are bound to cores, more are not: %s", g.name, c, argv)
			}
		}
		for _, l := range g.lines {
			beside := strings.HasSuffix(l.metric, "/cpu") // shown beside the figures that are bound
			if l.bound < 0 || l.bound == unbound && !g.beside && !beside && len(g.peers) > 0 {
				t.Errorf("%s %s has no bound", g.name, l.title)
			}
			if l.over != "" && l.protocol == "" {
				t.Errorf("%s %s is a ratio of nothing", g.name, l.title)
			}
			if l.metric == "" && g.metric == "" && !g.wallClock {
				t.Errorf("%s %s has no metric", g.name, l.title)
			}
		}
	}
}

func TestNetworkGroupsAvoidSharedMemory(t *testing.T) {
	bin := binaries{openMPI: "peers-openmpi", mpich: "peers-mpich", bare: "ofi_bare", bareUDP: "udp_bare", muster: "muster", musterOFI: "muster-ofi", musterC: "muster-c"}
	at := hostSet{hosts: []string{"a", "b", "c", "d"}, rails: 2, rsh: "run-on {host}", onHost: "onhost.sh", second: "10.61.0.2"}
	find := func(name string) *group {
		for _, g := range plan() {
			if g.name == name {
				return g
			}
		}
		t.Fatalf("there is no group %s", name)
		return nil
	}
	for _, c := range []struct {
		group string
		who   contender
		words []string
	}{
		{"openmpi-latency", muster, []string{"muster-c run -n 2 --bind core --openmpi peers-openmpi latency"}},
		{"openmpi-latency", asMPICH, []string{"muster-c run -n 2 --bind core --mpich peers-mpich latency"}},
		{"openmpi-latency", openMPI, []string{"btl vader,self", "peers-openmpi latency"}},
		{"tcp", openMPI, []string{"btl tcp,self", "btl_tcp_if_include lo"}},
		{"tcp", mpich, []string{"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=self,tcp", "UCX_NET_DEVICES=lo"}},
		{"tcp", muster, []string{"MUSTER_NO_SHARED_MEMORY=1", "MUSTER_NETWORK=ofi:net", "MUSTER_INTERFACE=lo", "muster-ofi run"}},
		{"iwarp-rd", openMPI, []string{"btl tcp,self", "btl_tcp_if_include lo"}},
		{"iwarp-rd", muster, []string{"MUSTER_NO_SHARED_MEMORY=1", "MUSTER_NETWORK=iwarp", "MUSTER_CHANNEL=rd", "muster run"}},
		{"cable-bw", bareUDP, []string{"udp_bare a b 10.61.0.2 bw -s 8192,65536,1048576,4194304 -i 20"}},
		{"cable-bw", muster, []string{"MUSTER_CHANNEL=hybrid", "muster run"}},
		{"rails-bw", oneRail, []string{"MUSTER_CHANNEL=hybrid", "MUSTER_INTERFACE=eth0", "muster run"}},
		{"encrypt-bw", plain, []string{"MUSTER_CHANNEL=hybrid", "muster run", "bw --sizes 1048576"}},
		{"encrypt-bw", muster, []string{"MUSTER_CHANNEL=hybrid", "MUSTER_ENCRYPT=on", "muster run", "bw --sizes 1048576"}},
		{"encrypt-latency", gcm, []string{"muster bench cipher --sizes 8 --json"}},
		{"ofi-latency", bare, []string{"ofi_bare latency -s 8,8192"}},
		{"ofi-bw", muster, []string{"MUSTER_NO_SHARED_MEMORY=1", "MUSTER_NETWORK=ofi:net"}},
		{"coll-mif-tail", openMPI, []string{"onhost.sh a mpirun.openmpi", "--host a:4,b:4,c:4,d:4", "plm_rsh_agent onhost.sh", "btl vader,tcp,self", "btl_tcp_if_include eth0,eth1", "coll -o alltoall,allgather -s 4,8192 -m 30,96 -f 32,512 -l 0"}},
		{"coll-mif-tail", mpich, []string{"onhost.sh a mpiexec.hydra", "-hosts a:4,b:4,c:4,d:4", "-launcher-exec onhost.sh", "UCX_TLS=self,tcp", "UCX_NET_DEVICES=eth0,eth1"}},
		{"coll-mif-late", muster, []string{"MUSTER_NETWORK=iwarp", "MUSTER_CHANNEL=hybrid", "muster run", "--hosts a:4,b:4,c:4,d:4 --rsh run-on {host}", "--message 30us,96us --mif 128 --late 25%,75%"}},
		{"hosts-start", muster, []string{"MUSTER_NETWORK=ofi:net", "--hosts a:16,b:16,c:16,d:16 --rsh run-on {host}", "--since 1"}},
	} {
		cmd := find(c.group).command(c.who, bin, at)
		line := strings.Join(append(cmd.env, cmd.argv...), " ")
		for _, words := range c.words {
			if !strings.Contains(line, words) {
				t.Errorf("%s of %s is started without %q: %s", c.group, c.who, words, line)
			}
		}
	}
}

func TestOnlySelectsGroupOrFamily(t *testing.T) {
	for only, want := range map[string][]string{
		"tcp":    {"tcp"},
		"ofi":    {"ofi-latency", "ofi-bw"},
		"ofi-bw": {"ofi-bw"},
		"of":     nil,
	} {
		groups, err := selectGroups(Options{Only: only})
		var names []string
		for _, g := range groups {
			names = append(names, g.name)
		}
		if !slices.Equal(names, want) || (err != nil) != (want == nil) {
			t.Errorf("--only %s takes %v, %v; want %v", only, names, err, want)
		}
	}
}

func TestProtocolOfLongMessages(t *testing.T) {
	groups, err := selectGroups(Options{Protocol: "spec"})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		cmd := g.command(muster, binaries{muster: "muster", musterOFI: "muster"}, hostSet{hosts: []string{"a"}})
		if got := strings.Contains(strings.Join(cmd.argv, " "), "--protocol spec"); got != g.protocols {
			t.Errorf("%s: ours is started with %v", g.name, cmd.argv)
		}
		if strings.Contains(g.args, "spec") {
			t.Errorf("%s: the peers are started with %q", g.name, g.args)
		}
	}
}

// Peers that are shown beside ours do not decide, and lines may have metrics of their own.
func TestFiguresBesidePeers(t *testing.T) {
	out := `{"size":65536,"metric":"recv/receiver-first","unit":"%","value":99}
{"size":65536,"metric":"recv/receiver-first/latency","unit":"us","value":7}
{"size":65536,"metric":"recv/sender-first","unit":"%","value":-3}
`
	g := &group{name: "overlap", peers: []contender{openMPI}, beside: true, quantity: percentMore, lines: []line{
		{title: "first", size: 65536, metric: "recv/receiver-first", bound: 92},
		{title: "second", size: 65536, metric: "recv/sender-first", bound: unbound},
	}}
	values, err := g.figures([]byte(out), "value")
	if err != nil || !slices.Equal(values, []float64{99, -3}) {
		t.Fatalf("the figures are %v, %v", values, err)
	}
	r := newRuns(g, Options{Rounds: 1})
	for i, v := range values {
		r.values[muster][i], r.values[openMPI][i] = []float64{v}, []float64{100}
	}
	s := r.summary()
	if one, two := s.result(&s.lines[0]), s.result(&s.lines[1]); one != "met" || two != "-" {
		t.Errorf("99 %% is %s and a line without a bound is %s; want met and -", one, two)
	}
	if text := s.table().Markdown(); !strings.Contains(text, "| first | 100 (100–100) | 99.0 (99.0–99.0) | ≥ 92 | met |") || strings.Contains(text, "ratio") {
		t.Errorf("the table is\n%s", text)
	}
}

func TestProgramsOfGroup(t *testing.T) {
	groups, err := selectGroups(Options{Only: "tcp"})
	if err != nil {
		t.Fatal(err)
	}
	if got := groups[0].programs(); !slices.Equal(got, []program{openMPIProgram, mpichProgram, musterOFIProgram}) {
		t.Errorf("tcp needs the programs %v", got)
	}
}

// What ofi_bare printed, and what the report makes of it.
func TestFiguresOfTheBareProvider(t *testing.T) {
	out := `{"bench":"latency","ranks":2,"device":"net bare","size":8,"metric":"latency","unit":"us","value":4.10496,"min":3.84136,"p50":4.01256,"p99":5.6316}
{"bench":"latency","ranks":2,"device":"net bare","size":8192,"metric":"latency","unit":"us","value":6.65553,"min":6.2563,"p50":6.60962,"p99":7.88085}
`
	groups, err := selectGroups(Options{Only: "ofi-latency"})
	if err != nil {
		t.Fatal(err)
	}
	g := groups[0]
	values, err := g.figures([]byte(out), "value")
	if err != nil || !slices.Equal(values, []float64{4.10496, 6.65553}) {
		t.Fatalf("figures are %v, %v", values, err)
	}
	r := newRuns(g, Options{Rounds: 1})
	for i, v := range values {
		r.values[bare][i], r.values[muster][i] = []float64{v}, []float64{v * 1.2}
	}
	s := r.summary()
	if one, two := s.result(&s.lines[0]), s.result(&s.lines[1]); one != "met" || two != "missed" {
		t.Errorf("1.2 times the provider is %s at 8 B and %s at 8 KB; want met, since 1.25 is allowed, and missed, since 1.15 is", one, two)
	}
	if text := s.table().Markdown(); !strings.Contains(text, "libfabric bare, µs") || !strings.Contains(text, "| 8 B | 4.10 (4.10–4.10) | 4.93") {
		t.Errorf("the table is\n%s", text)
	}
}

// A table is written with its stamp, and the page can read it back.
func TestTableRoundTrip(t *testing.T) {
	g := &group{name: "x", title: "Half round trip", peers: []contender{openMPI, mpich}, quantity: micros, lines: []line{{title: "8 B", size: 8, bound: 0.6}, {title: "1 KB", size: 1024, bound: 1}}}
	r := newRuns(g, Options{Rounds: 1})
	for i, values := range [][]float64{{1, 2, 0.5}, {0, 2, 1}} {
		r.values[openMPI][i], r.values[mpich][i], r.values[muster][i] = values[:1], values[1:2], values[2:]
	}
	s := r.summary()
	table := s.table()
	folder := t.TempDir()
	if err := (&Outcome{Table: table, Versions: []string{"MPICH 4.0.2"}}).AddTo(results.NewRun("0123abcde", "go run ./bench/peers", 1), folder, "go run ./bench/peers -only x"); err != nil {
		t.Fatal(err)
	}
	read, err := results.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read["x"], table) || !strings.HasSuffix(table.Stamp.Versions, "Muster 0123abcde, MPICH 4.0.2") {
		t.Errorf("read back\n%+v, want\n%+v", read["x"], table)
	}
	// A ratio to zero is not a figure.
	if got := s.result(&s.lines[1]); got != "-" {
		t.Errorf("a ratio to zero is %q, want none", got)
	}
}

// Only groups that differ in nothing but their figures share runs.
func TestSharedRuns(t *testing.T) {
	bin := binaries{openMPI: "peers-openmpi", mpich: "peers-mpich", bare: "ofi_bare", muster: "muster", musterOFI: "muster-ofi"}
	at := hostSet{hosts: []string{"a", "b", "c", "d"}, rsh: "run-on {host}", onHost: "onhost.sh"}
	all, err := selectGroups(Options{})
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string][]string{}
	for _, g := range all {
		at.rails = max(g.rails, 1)
		key := g.runKey(g.command(muster, bin, at), 0)
		groups[key] = append(groups[key], g.name)
	}
	shared := []string{"coll-mif-tail coll-mif-mean coll-mif-bound", "stalls stalls-time stalls-causes", "reuse reuse-uses", "connections-latency connections-throughput"}
	for _, names := range groups {
		if len(names) > 1 && !slices.Contains(shared, strings.Join(names, " ")) {
			t.Errorf("the groups %v share runs", names)
		}
	}
}

// A line may be a ratio of two protocols, or relative to another one, within a run.
func TestFiguresOfProtocols(t *testing.T) {
	g := &group{name: "x", quantity: latencyMicros, lines: []line{
		{title: "ratio", size: 64, protocol: "rd", over: "rc"},
		{title: "change", size: 64, protocol: "rd", against: "rc", metric: "change"},
	}}
	g.unit = "%"
	out := `{"size":64,"metric":"latency","unit":"us","value":8,"protocol":"rc"}
{"size":64,"metric":"latency","unit":"us","value":6,"protocol":"rd"}
{"size":64,"metric":"change","unit":"%","value":-25,"protocol":"rd","against":"rc"}
{"size":64,"metric":"change","unit":"us","value":6,"protocol":"rd"}
`
	if got, err := g.figures([]byte(out), "value"); err != nil || !slices.Equal(got, []float64{0.75, -25}) {
		t.Errorf("the figures are %v, %v; want 0.75 and -25", got, err)
	}
}

func TestHungRunIsKilled(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	// As launchers do: the rank is in a session of its own, and SIGTERM is not
	// enough to end the launcher.
	script := fmt.Sprintf("trap '' TERM; setsid sleep 100 & echo $! > %s; sleep 100", pidFile)
	var pid []byte
	for limit := 300 * time.Millisecond; len(pid) == 0; limit *= 4 { // longer if it has not started by then, on a busy machine
		start := time.Now()
		_, err := runBounded(context.Background(), limit, command{argv: []string{"sh", "-c", script}})
		if !errors.Is(err, errHung) {
			t.Errorf("the run ended with %v, want that it hung", err)
		}
		if took := time.Since(start); took > limit+10*time.Second {
			t.Errorf("it took %s to give up", took)
		}
		if pid, err = os.ReadFile(pidFile); err != nil && limit > 4*time.Second {
			t.Fatal(err)
		}
	}
	status := "/proc/" + strings.TrimSpace(string(pid)) + "/cmdline"
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("no /proc to look into")
	}
	for range 100 { // the killed process may need a moment
		cmd, err := os.ReadFile(status)
		if err != nil || len(cmd) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %s is still there", pid)
}

func TestFailedCommandQuotesItsError(t *testing.T) {
	out, err := runBounded(context.Background(), time.Minute, command{argv: []string{"sh", "-c", "echo no fabric >&2; exit 3"}})
	if err == nil || !strings.Contains(err.Error(), "no fabric") {
		t.Errorf("got %q and the error %v, want one that quotes the complaint", out, err)
	}
}

func TestCPUTicks(t *testing.T) {
	busy, total := parseTicks("cpu  10 1 5 80 4 0 0 0 7 7\ncpu0 1 1 1 1\n")
	if busy != 16 || total != 100 {
		t.Errorf("%v of %v ticks were busy, want 16 of 100", busy, total)
	}
	for _, broken := range []string{"", "cpu\n", "intr 1 2 3 4 5 6\n", "cpu a b c d e\n"} {
		if busy, total := parseTicks(broken); busy != 0 || total != 0 {
			t.Errorf("%q gave %v of %v ticks", broken, busy, total)
		}
	}
}

func TestCacheLineHop(t *testing.T) {
	cpus, err := twoCPUs()
	if err != nil {
		t.Skip(err)
	}
	hop := cacheLineHop(cpus[0], cpus[1])
	if math.IsNaN(hop) {
		t.Skip("the cores are too busy to tell")
	}
	if hop < 1 || hop > 1e6 {
		t.Errorf("a cache line takes %v ns from core to core", hop)
	}
}
