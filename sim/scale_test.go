package sim

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var scaleWrite = flag.Bool("scale.write", false, "write the pictures of docs/guide/scale.md")

// scaleCharts are the pictures of docs/guide/scale.md, which has the commands of the figures.
func scaleCharts() map[string]*Chart {
	ranks := [][2]float64{{64, 0}, {256, 0}, {1024, 0}, {4096, 0}}
	times := func(us ...float64) (points [][2]float64) {
		for i, t := range us {
			points = append(points, [2]float64{ranks[i][0], t})
		}
		return points
	}
	return map[string]*Chart{
		"scale-start.svg": {Title: "Start of a job on one host until the first message of all ranks", X: "ranks", Y: "s of CPU time", Series: []Series{
			{Name: "launcher and ranks", Points: [][2]float64{{32, 0.13}, {128, 0.57}, {512, 2.89}, {1024, 8.09}}}}},
		"scale-memory.svg": {Title: "Memory of a rank for messages", X: "ranks", Y: "bytes", Beyond: 64, Series: []Series{
			{Name: "barrier and some calls", Points: [][2]float64{{4, 5244}, {16, 9706}, {64, 13770}}},
			{Name: "barrier", Simulated: true, Points: [][2]float64{{64, 8544}, {1024, 14272}, {8192, 18568}, {65536, 22864}}},
			{Name: "allreduce 8 B", Simulated: true, Points: [][2]float64{{64, 5744}, {1024, 9232}, {8192, 11848}, {65536, 14464}}},
			{Name: "bcast 8 B", Simulated: true, Points: [][2]float64{{64, 1914}, {1024, 1942}, {8192, 1944}, {65536, 1944}, {1048576, 1944}}}}},
		"scale-exchange.svg": {Title: "Exchanges of 8 bytes, 64 ranks a node, assumed machine", X: "ranks", Y: "µs at the last rank", Series: []Series{
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
		file := "../docs/pictures/" + name
		if *scaleWrite {
			if err := os.WriteFile(file, chart.SVG(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, chart.SVG()) {
			t.Errorf("%s differs from its figures (%v): run go test ./sim -run TestScalePictures -scale.write", file, err)
		}
	}
}
