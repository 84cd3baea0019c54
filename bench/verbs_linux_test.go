package bench_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/iwarp"
	"github.com/muster-mpi/muster/rdma/shm"
	"github.com/muster-mpi/muster/rdma/soft"
)

// openTestDevice opens devices of which a process can have two.
func openTestDevice() bench.OpenVerbs {
	hosts := map[string]*shm.Host{} // one for each trial, identified by its key
	mu := make(chan bool, 1)
	return func(name string, at bench.VerbsEndpoint) (rdma.Device, rdma.Transport, error) {
		switch name {
		case "rc", "rc-nocrc":
			d, err := iwarp.Open(iwarp.Config{Address: at.Address, Key: at.Key, NoCRC: name == "rc-nocrc"})
			return d, rdma.RC, err
		case "rd", "ud":
			d, err := soft.Open(soft.Config{Bind: netip.AddrPortFrom(netip.MustParseAddr(at.Address), 0), JobKey: at.Key})
			return d, map[string]rdma.Transport{"rd": rdma.RD, "ud": rdma.UD}[name], err
		case "shm":
			mu <- true
			if hosts[string(at.Key)] == nil {
				hosts[string(at.Key)] = shm.NewHost()
			}
			host := hosts[string(at.Key)]
			<-mu
			d, err := shm.Open(shm.Config{Host: host, Index: at.Side, Peers: 2})
			return d, rdma.RD, err
		case "broken":
			return nil, 0, errors.New("it smells of smoke")
		}
		return nil, 0, fmt.Errorf("%w: there is no %s here", rdma.ErrUnsupported, name)
	}
}

// lead runs a benchmark between two goroutines.
func lead(t *testing.T, name string, p bench.VerbsParams) ([]bench.VerbsRow, error) {
	t.Helper()
	b, err := bench.FindVerbs(name)
	if err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	open := openTestDevice()
	followed := make(chan error, 1)
	go func() {
		followed <- bench.NewVerbsSession(there, bench.VerbsEndpoint{Address: "127.0.0.1", Side: 1}, open).Follow()
	}()
	var rows []bench.VerbsRow
	err = b.Lead(bench.NewVerbsSession(here, bench.VerbsEndpoint{Address: "127.0.0.1"}, open), p, func(r bench.VerbsRow) { rows = append(rows, r) })
	here.Close()
	if followed := <-followed; followed != nil && err == nil {
		t.Errorf("the follower ends with: %v", followed)
	}
	there.Close()
	return rows, err
}

func TestVerbsBenchmarksOverEveryDevice(t *testing.T) {
	for _, c := range []struct {
		name    string
		devices string
		params  bench.VerbsParams
		metrics string // with the devices that have them
	}{
		{"verbs-latency", "tcp,udp,rc,rd,ud,shm", bench.VerbsParams{Sizes: []int{1, 4000}}, "latency:tcp,udp,rc,rd,ud,shm"},
		{"verbs-bw", "tcp,udp,rc,rc-nocrc,rd,ud,shm", bench.VerbsParams{Sizes: []int{3000}, Window: 8}, "bandwidth:tcp,udp,rc,rc-nocrc,rd,ud,shm lost:udp,ud"},
		{"verbs-bw", "tcp,udp,rc,rd,ud,shm", bench.VerbsParams{Sizes: []int{200 << 10}, Window: 2, Time: 40 * time.Millisecond}, "bandwidth:tcp,rc,rd,ud,shm"},
		{"verbs-bibw", "tcp,rc,rd,ud", bench.VerbsParams{Sizes: []int{3000}, Window: 8}, "bandwidth:tcp,rc,rd"},
		{"verbs-write", "tcp,rc,rd,shm,ud", bench.VerbsParams{Sizes: []int{20000}, Window: 4}, "time:tcp,rc,rd,shm bandwidth:tcp,rc,rd,shm"},
		{"verbs-read", "tcp,rc,rd,shm", bench.VerbsParams{Sizes: []int{20000}, Window: 4}, "time:tcp,rc,rd,shm bandwidth:tcp,rc,rd,shm"},
		{"verbs-connections", "tcp,rc,rd,shm", bench.VerbsParams{Sizes: []int{64}, Connections: []int{3}}, "latency:tcp,rc,rd throughput:tcp,rc,rd"},
		{"verbs-progress", "rc,tcp", bench.VerbsParams{Sizes: []int{64 << 10}}, "progress:rc complete:rc time:rc"},
		{"verbs-memory", "rc,rd,tcp", bench.VerbsParams{Peers: 20}, "total:rc,rd user:rc,rd kernel:rc,rd sockets:rc,rd sockstat:rc,rd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.params.Devices, c.params.Rounds = strings.Split(c.devices, ","), 1
			c.params.Time = max(c.params.Time, 2*time.Millisecond) // longer where datagrams may be lost
			rows, err := lead(t, c.name, c.params)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]string{}
			for _, row := range rows {
				for _, cell := range row.Cells {
					if len(cell.Values) != 1 {
						continue
					}
					if !strings.Contains(","+seen[row.Metric], ","+cell.Device+",") {
						seen[row.Metric] += cell.Device + ","
					}
					checkSane(t, row, cell)
				}
			}
			for _, want := range strings.Fields(c.metrics) {
				metric, devices, _ := strings.Cut(want, ":")
				if got := strings.TrimSuffix(seen[metric], ","); got != devices && metric != "lost" {
					t.Errorf("%s was measured of %q, want %q; rows: %+v", metric, got, devices, rows)
				}
			}
		})
	}
}

// checkSane rejects implausible figures.
func checkSane(t *testing.T, row bench.VerbsRow, c bench.VerbsCell) {
	t.Helper()
	v := c.Values[0]
	low, high := 0.0, 1e7 // µs, MB/s
	switch row.Unit {
	case "%":
		low, high = -1e-9, 100+1e-9
	case "B": // the whole machine is in some of them
		low, high = -1e9, 1e9
	case "1":
		low, high = -1e-9, 2+1e-9
	}
	if v <= low || v > high || c.Way == "" {
		t.Errorf("%s of %s at %d bytes is %g %s by way of %q", row.Metric, c.Device, row.Size, v, row.Unit, c.Way)
	}
	switch {
	case row.Metric == "sockets" && c.Device == "rc" && v != 2 /* both ends are here */, row.Metric == "sockets" && c.Device == "rd" && v != 0:
		t.Errorf("a peer of %s takes %g sockets", c.Device, v)
	case row.Metric == "kernel" && c.Device == "rd" && v > 1000:
		t.Errorf("an idle peer of rd takes %g bytes of the kernel, which has no socket for it", v)
	case row.Metric == "bandwidth" && row.Size == 200<<10 && c.Device != bench.BareTCP && !strings.HasPrefix(c.Way, "write"):
		t.Errorf("%s moves %d bytes by way of %q, want write", c.Device, row.Size, c.Way)
	}
}

func TestUnavailableDeviceIsLeftOut(t *testing.T) {
	rows, err := lead(t, "verbs-latency", bench.VerbsParams{Devices: []string{"tcp", "none", "rc"}, Sizes: []int{8, 16}, Rounds: 2, Time: time.Millisecond})
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v %+v", err, rows)
	}
	for _, row := range rows {
		if c := row.Cells[1]; c.Device != "none" || len(c.Values) != 0 || !strings.Contains(c.Missing, "there is no none here") {
			t.Errorf("the missing device is reported as %+v", c)
		}
		if c := row.Cells[2]; len(c.Values) != 2 || len(c.Ratios) != 2 {
			t.Errorf("the others have %+v", c)
		}
	}
}

func TestFailedDeviceEndsBenchmark(t *testing.T) {
	_, err := lead(t, "verbs-latency", bench.VerbsParams{Devices: []string{"tcp", "broken"}, Sizes: []int{8}, Time: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "verbs-latency over broken, 8 bytes, round 1") || !strings.Contains(err.Error(), "smoke") {
		t.Errorf("it ends with %v", err)
	}
}

func TestInvalidVerbsParams(t *testing.T) {
	for _, c := range []struct {
		params bench.VerbsParams
		want   string
	}{
		{bench.VerbsParams{Devices: []string{"tcp", "tcp"}}, "tcp is named twice"},
		{bench.VerbsParams{Against: "elan"}, "cannot compare with elan"},
		{bench.VerbsParams{Sizes: []int{0}}, "smallest is one byte"},
		{bench.VerbsParams{Rounds: -1}, "out of range"},
		{bench.VerbsParams{Time: -1}, "negative"},
	} {
		if _, err := lead(t, "verbs-latency", c.params); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v gives %v, want %q", c.params, err, c.want)
		}
	}
	if _, err := bench.FindVerbs("verbs-smell"); err == nil {
		t.Error("verbs-smell was found")
	}
}

func TestRowsAsTableJSONAndPicture(t *testing.T) {
	b, err := bench.FindVerbs("verbs-latency")
	if err != nil {
		t.Fatal(err)
	}
	row := bench.VerbsRow{Bench: b.Name, Connections: 1, Size: 64, Metric: "latency", Unit: "us", Against: "tcp", Cells: []bench.VerbsCell{
		{Device: "tcp", Way: "stream", Values: []float64{4, 5, 30}, Ratios: []float64{1, 1, 1}},
		{Device: "rc", Way: "send", Values: []float64{6, 5, 33}, Ratios: []float64{1.5, 1, 1.1}},
		{Device: "none", Missing: "nobody knows it"},
	}}
	var text, lines bytes.Buffer
	for _, p := range []*bench.VerbsPrinter{{W: &text, B: b, Round: 3}, {W: &lines, B: b, JSON: true}} {
		if err := p.Print(row); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"Verbs Latency Test", "rc              latency/us           6.00        5.00       33.00     1.10  send", "# none at 64 bytes: nobody knows it"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &text)
		}
	}
	var got []float64
	for line := range strings.Lines(lines.String()) {
		var r bench.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, r.Value, r.Min, r.P99)
	}
	if !slices.Equal(got, []float64{5, 4, 30, 6, 5, 33, 1.1, 1, 1.5}) {
		t.Errorf("the objects have %v", got)
	}
	if c := bench.VerbsChart(b, []bench.VerbsRow{row}); len(c.Series) != 2 || c.Series[1].Points[0] != (bench.Point{X: 64, Y: 6}) {
		t.Errorf("the picture is %+v", c)
	}
}
