package bench

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
)

// elements counts what is drawn and gathers its text; the SVG must be well-formed.
func elements(t *testing.T, svg string) (count map[string]int, texts []string) {
	t.Helper()
	count = map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return count, texts
		}
		if err != nil {
			t.Fatalf("the SVG is not well-formed: %v\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			count[token.Name.Local]++
			for _, a := range token.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("<%s> has %s=%q", token.Name.Local, a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			if s := strings.TrimSpace(string(token)); s != "" {
				texts = append(texts, s)
			}
		}
	}
}

func draw(t *testing.T, c Chart) string {
	t.Helper()
	var b strings.Builder
	if err := c.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestChartHasEverySeries(t *testing.T) {
	b, err := Find("overlap")
	if err != nil {
		t.Fatal(err)
	}
	results := []Result{
		{Size: 1 << 10, Metric: "recv/receiver-first", Unit: "%", Value: -3, Protocol: "get"},
		{Size: 1 << 20, Metric: "recv/receiver-first", Unit: "%", Value: 2, Protocol: "get"},
		{Size: 1 << 10, Metric: "recv/receiver-first", Unit: "%", Value: 50, Protocol: "a<b&\"c\""},
		{Size: 1 << 20, Metric: "recv/receiver-first", Unit: "%", Value: 97, Protocol: "a<b&\"c\""},
		{Size: 1 << 20, Metric: "recv/receiver-first/latency", Unit: "us", Value: 1e6, Beside: true},
	}
	count, texts := elements(t, draw(t, ChartOf(b, results)))
	if count["svg"] != 1 || count["polyline"] != 2 || count["circle"] != 4 {
		t.Errorf("there are %v; want one picture with two lines of two points each", count)
	}
	all := strings.Join(texts, "|")
	for _, want := range []string{b.Title, "recv/receiver-first, get", `recv/receiver-first, a<b&"c"`, "Overlap (%)", "message size", "1 KB", "1 MB", "|0|", "|100"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not written in the picture: %s", want, all)
		}
	}
	if strings.Contains(all, "latency") {
		t.Error("a figure beside the main ones was drawn")
	}
}

func TestComparisonOverRatio(t *testing.T) {
	b, err := Find("exchange")
	if err != nil {
		t.Fatal(err)
	}
	c := ChartOf(b, []Result{
		{Size: 1 << 17, Metric: "model-1/0.5", Value: 80, Ratio: 0.5, Protocol: "get"},
		{Size: 1 << 17, Metric: "model-1/0.5", Value: -30, Ratio: 0.5, Protocol: "spec", Against: "get"},
		{Size: 1 << 17, Metric: "model-1/2", Value: -10, Ratio: 2, Protocol: "spec", Against: "get"},
		{Size: 1 << 17, Metric: "model-1/communication", Value: -1, Protocol: "spec", Against: "get", Beside: true},
	})
	if len(c.Series) != 1 || c.Series[0].Name != "model-1, spec" || len(c.Series[0].Points) != 2 || c.Bytes || c.Y != "change against get (%)" {
		t.Errorf("the chart is %+v", c)
	}
	elements(t, draw(t, c))
}

func TestPointsAreInsideThePicture(t *testing.T) {
	for name, points := range map[string][]Point{
		"none":              nil,
		"one":               {{1024, 5}},
		"all the same":      {{1, 0}, {1, 0}},
		"below zero":        {{1, -3}, {1 << 22, -400}},
		"small and large":   {{0.1, 1e-9}, {4, 1e9}},
		"only large":        {{2, 1000}, {4, 1001}},
		"between two ticks": {{1100, 1}, {1200, 2}},
	} {
		for _, times := range []bool{false, true} {
			c := Chart{Series: []Series{{Name: name, Points: points}}, Times: times}
			f, drawn := c.frame(), 0
			for _, p := range points {
				if times && p.Y <= 0 {
					continue
				}
				drawn++
				if x, y := f.x(p.X), f.y(p.Y); !(x >= plotLeft-1 && x <= plotLeft+plotWidth+1 && y >= plotTop-1 && y <= plotTop+plotHeight+1) {
					t.Errorf("%s (times: %v): %v is drawn at %v, %v", name, times, p, x, y)
				}
			}
			if count, _ := elements(t, draw(t, c)); count["circle"] != drawn {
				t.Errorf("%s (times: %v): %d points are drawn, want %d", name, times, count["circle"], drawn)
			}
		}
	}
}

func TestLogarithmicMarks(t *testing.T) {
	_, texts := elements(t, draw(t, Chart{Times: true, Series: []Series{{Points: []Point{{1, 0.4}, {2, 30}}}}}))
	all := "|" + strings.Join(texts, "|") + "|"
	for _, want := range []string{"|0.5|", "|1|", "|2|", "|10|", "|20|"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not written in the picture: %s", want, all)
		}
	}
}

func TestRoundSteps(t *testing.T) {
	for v, want := range map[float64]float64{0.9: 1, 1: 1, 1.1: 2, 3: 5, 7: 10, 17: 20, 0.03: 0.05} {
		if got := roundStep(v); math.Abs(got-want) > want*1e-9 {
			t.Errorf("the step next to %v is %v, want %v", v, got, want)
		}
	}
}

// Long names do not fit beside the axes.
func TestLongLegendIsBelow(t *testing.T) {
	c := Chart{Title: "T", X: "x", Y: "y"}
	c.Add("short", 1, 2)
	c.Add("short", 2, 3)
	beside := draw(t, c)
	c.Add("a name that is longer than the room beside the axes", 1, 2)
	below := draw(t, c)
	if strings.Contains(beside, `height="494"`) || !strings.Contains(below, `height="514"`) {
		t.Errorf("the legend is not where it fits:\n%.120s\n%.120s", beside, below)
	}
}

func TestBarChart(t *testing.T) {
	mark := -2.5
	var b strings.Builder
	c := BarChart{Title: "T", X: "share (%)", Mark: "T1", Rows: []BarRow{
		{Label: "a<b", Bars: []Bar{{"ours", 3, 2, 4}, {"theirs", 1, 1, 1}}, Mark: &mark},
		{Label: "none"},
	}}
	if err := c.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	count, texts := elements(t, b.String())
	if all := "|" + strings.Join(texts, "|") + "|"; count["rect"] != 5 || !strings.Contains(all, "|a<b|") || !strings.Contains(all, "|share (%)|") || !strings.Contains(all, "|T1|") {
		t.Errorf("%d rectangles, %s", count["rect"], all)
	}
	if err := (BarChart{}).WriteSVG(io.Discard); err != nil {
		t.Error(err)
	}
}
