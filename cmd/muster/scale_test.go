package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/muster-mpi/muster/bench"
)

var scaleWrite = flag.Bool("scale.write", false, "write the pictures of docs/guide/scale.md")

// scaleCharts are the pictures of docs/guide/scale.md, which has the commands of the figures.
func scaleCharts() map[string]bench.Chart {
	times := func(us ...float64) (points []bench.Point) {
		for i, t := range us {
			points = append(points, bench.Point{X: []float64{64, 256, 1024, 4096}[i], Y: t})
		}
		return points
	}
	return map[string]bench.Chart{
		"scale-start.svg": {Title: "Start of a job on one host until the first message of all ranks", X: "ranks", Times: true, Y: "s of CPU time", Series: []bench.Series{
			{Name: "launcher and ranks", Points: []bench.Point{{X: 32, Y: 0.13}, {X: 128, Y: 0.57}, {X: 512, Y: 2.89}, {X: 1024, Y: 8.09}}}}},
		"scale-memory.svg": {Title: "Memory of a rank for messages", X: "ranks", Times: true, Y: "bytes", Beyond: 64, Series: []bench.Series{
			{Name: "barrier and some calls", Points: []bench.Point{{X: 4, Y: 5244}, {X: 16, Y: 9706}, {X: 64, Y: 13770}}},
			{Name: "barrier", Simulated: true, Points: []bench.Point{{X: 64, Y: 8544}, {X: 1024, Y: 14272}, {X: 8192, Y: 18568}, {X: 65536, Y: 22864}}},
			{Name: "allreduce 8 B", Simulated: true, Points: []bench.Point{{X: 64, Y: 5744}, {X: 1024, Y: 9232}, {X: 8192, Y: 11848}, {X: 65536, Y: 14464}}},
			{Name: "bcast 8 B", Simulated: true, Points: []bench.Point{{X: 64, Y: 1914}, {X: 1024, Y: 1942}, {X: 8192, Y: 1944}, {X: 65536, Y: 1944}, {X: 1048576, Y: 1944}}}}},
		"scale-exchange.svg": {Title: "Exchanges of 8 bytes, 64 ranks a node, assumed machine", X: "ranks", Times: true, Y: "µs at the last rank", Series: []bench.Series{
			{Name: "alltoall, direct", Simulated: true, Points: times(15.2, 149.8, 688.2, 2841.9)},
			{Name: "alltoall, pairwise", Simulated: true, Points: times(24.7, 413.3, 1965.5)},
			{Name: "allgather, ring, late ranks", Simulated: true, Points: times(24.7, 120.5, 482.5, 1931.3)},
			{Name: "allgather, pap_shm_direct, late", Simulated: true, Points: times(11.3, 54.0, 156.5, 724.3)},
			{Name: "allgather, node-bruck, late", Simulated: true, Points: times(0, 27.8, 95.2, 350.1)[1:]},
			{Name: "allgather, bruck, late", Simulated: true, Points: times(2.5, 10.1, 25.6, 68.2)}}},
	}
}

// TestScalePictures checks that the pictures have the figures above.
func TestScalePictures(t *testing.T) {
	for name, chart := range scaleCharts() {
		var svg bytes.Buffer
		if err := chart.WriteSVG(&svg); err != nil {
			t.Fatal(err)
		}
		file := "../../docs/pictures/" + name
		if *scaleWrite {
			if err := os.WriteFile(file, svg.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, svg.Bytes()) {
			t.Errorf("%s differs from its figures (%v): run go test ./cmd/muster -run TestScalePictures -scale.write", file, err)
		}
	}
}
