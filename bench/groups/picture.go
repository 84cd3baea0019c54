package groups

// Charts: the peers' times as multiples of ours.

import (
	"bytes"
	"strings"

	"github.com/muster-mpi/muster/bench"
)

// chart has a series for each peer and each kind of line about the time after the last
// arrival. The kind is the text before the comma in the title of a line.
func (s *summary) chart() bench.Chart {
	c := bench.Chart{Title: s.group.title, X: "size", Y: "time relative to Muster", Bytes: true, Times: true}
	for _, peer := range s.group.peers {
		for i, l := range s.lines {
			kind, _, _ := strings.Cut(l.title, ",")
			ratio := spreadOf(ratios(s.values[peer][i], s.values[muster][i]))
			if l.size <= 0 || !strings.HasSuffix(l.metric, "/tail") || !ratio.known() {
				continue
			}
			c.Add(peer.String()+", "+kind, float64(l.size), ratio.mid)
		}
	}
	return c
}

// picture returns the chart of a group that has one as SVG.
func (s *summary) picture() ([]byte, error) {
	if !s.group.chart {
		return nil, nil
	}
	var svg bytes.Buffer
	err := s.chart().WriteSVG(&svg)
	return svg.Bytes(), err
}
