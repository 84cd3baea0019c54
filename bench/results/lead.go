package results

// The pictures that the page begins with: how fast Muster is relative to Open MPI and MPICH, on one
// host and between hosts.

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/bench"
)

// lead is a picture. A series is what a table shows, against one peer.
type lead struct {
	file, title, text string
	series            []leadSeries
}

type leadSeries struct {
	table, name string
	rows        string // regular expression with a group for the size; "": the label is the size
}

var sizeLabel = regexp.MustCompile(`^(\d+) (B|KB|MB|GB)$`)

// leads lists the pictures.
func leads() []lead {
	const after = `^MIF 1, (.*)$`
	return []lead{
		{"lead-host.svg", "One host: messages between two ranks", "One host, two ranks with a core each", []leadSeries{{"latency", "latency", ""}, {"bw", "bandwidth", ""}}},
		{"lead-host-collectives.svg", "One host: collectives of 16 ranks on two cores", "One host, 16 ranks", []leadSeries{
			{"coll-bcast-16", "bcast", ""}, {"coll-allreduce-16", "allreduce", ""}, {"coll-allgather-16", "allgather", ""}, {"coll-alltoall-16", "alltoall", ""}}},
		{"lead-hosts.svg", "Two hosts: messages between two ranks, 1 Gbit/s", "Two hosts, cable of 1 Gbit/s", []leadSeries{
			{"lab-latency", "latency", ""}, {"lab-latency-long", "latency", ""}, {"lab-bw", "bandwidth", ""}, {"lab-bibw", "bandwidth both ways", ""}}},
		{"lead-hosts-collectives.svg", "Four hosts: collectives of 16 ranks, two cables of 1 Gbit/s", "Four hosts, 16 ranks, after the last one has arrived", []leadSeries{
			{"coll-lab-bcast", "bcast", after}, {"coll-lab-reduce", "reduce", after}, {"coll-lab-allreduce", "allreduce", after}, {"coll-lab-allgather", "allgather", after}, {"coll-lab-alltoall", "alltoall", after}}},
	}
}

// LeadPictures returns the names of the files in Folder.
func LeadPictures() (names []string) {
	for _, l := range leads() {
		names = append(names, l.file)
	}
	return names
}

// leadPeers are the columns that ours is compared with.
var leadPeers = []string{"Open MPI", "MPICH"}

// addLeads draws the pictures and returns the text that shows them.
func addLeads(files map[string]string, tables map[string]*Table) string {
	var b strings.Builder
	for _, l := range leads() {
		c := bench.Chart{Title: l.title, X: "message size", Y: "times as fast (above 1: Muster is faster)", Bytes: true, Times: true, Equal: true}
		for _, s := range l.series {
			if t := tables[s.table]; t != nil {
				s.addTo(&c, t)
			}
		}
		if len(c.Series) == 0 {
			continue
		}
		var svg strings.Builder
		_ = c.WriteSVG(&svg) // a Builder does not fail
		files[path.Join(Folder, l.file)] = svg.String()
		fmt.Fprintf(&b, "\n%s:\n\n![%s](results/%s)\n", l.text, l.title, l.file)
	}
	return b.String()
}

// addTo adds a line for each peer: its time divided by ours, or our rate divided by its.
func (s *leadSeries) addTo(c *bench.Chart, t *Table) {
	ours := t.column("Muster")
	if ours < 0 {
		return
	}
	rate := strings.HasSuffix(t.unit(ours), "/s")
	for _, peer := range leadPeers {
		theirs := t.column(peer)
		if theirs < 0 {
			continue
		}
		for _, row := range t.Rows {
			size, ok := s.sizeOf(row[0])
			if !ok {
				continue
			}
			faster := figure(row[theirs]) / figure(row[ours])
			if rate {
				faster = 1 / faster
			}
			if faster > 0 { // not NaN
				c.Add(s.name+", "+peer, size, faster)
			}
		}
	}
}

func (s *leadSeries) sizeOf(label string) (float64, bool) {
	if s.rows != "" {
		m := regexp.MustCompile(s.rows).FindStringSubmatch(label)
		if m == nil {
			return 0, false
		}
		label = m[1]
	}
	m := sizeLabel.FindStringSubmatch(label)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	return n * map[string]float64{"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}[m[2]], err == nil
}
