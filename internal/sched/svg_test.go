package sched

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// graphsOf builds the graphs of n ranks.
func graphsOf(t *testing.T, n int, build func(b *Builder, rank int)) []*Graph {
	t.Helper()
	var graphs []*Graph
	var b Builder
	for r := range n {
		b.Reset(r, n)
		build(&b, r)
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	return graphs
}

// bruckAllgather returns the allgather of T2 3.4.3 with k ports and blocks of m bytes:
// received blocks are appended, and a final shift puts them in order.
func bruckAllgather(t *testing.T, n, k, m int) []*Graph {
	return graphsOf(t, n, func(b *Builder, r int) {
		all := b.Tmp(n * m)
		have := b.Copy(all.At(0, m), Span{In, 0, m})
		for step, far := 1, 1; far < n; step, far = step+1, far*(k+1) {
			b.Step(step)
			ended := []ID{have}
			for j := 1; j <= k && j*far < n; j++ {
				blocks := min(far, n-j*far)
				b.Send((r-j*far%n+n)%n, all.At(0, blocks*m), have)
				ended = append(ended, b.Recv((r+j*far)%n, all.At(j*far*m, blocks*m)))
			}
			have = b.Join(ended...)
		}
		b.Step(9)
		b.Copy(Span{Out, r * m, (n - r) * m}, all.At(0, (n-r)*m), have)
		b.Copy(Span{Out, 0, r * m}, all.At((n-r)*m, r*m), have)
	})
}

// ringReduce returns an allreduce round a ring: n-1 steps that combine, n-1 that
// forward.
func ringReduce(t *testing.T, n, m int) []*Graph {
	return graphsOf(t, n, func(b *Builder, r int) {
		out := Span{Out, 0, n * m}
		last := b.Copy(out, Span{In, 0, n * m})
		tmp := b.Tmp(m)
		for s := range 2 * (n - 1) {
			send, recv := (r-s+2*n)%n, (r-s-1+2*n)%n
			sent := b.Send((r+1)%n, out.At(send*m, m), last)
			if s < n-1 {
				got := b.Recv((r+n-1)%n, tmp, last)
				last = b.Join(sent, b.Reduce(out.At(recv*m, m), tmp, got))
			} else {
				last = b.Join(sent, b.Recv((r+n-1)%n, out.At(recv*m, m), last))
			}
		}
	})
}

func TestTotal(t *testing.T) {
	for _, c := range []struct {
		name   string
		graphs []*Graph
		want   Totals
	}{
		// T2 equation 3.4: log3(9) steps, (9-1)/2 blocks in each of two ports.
		{"2-port Bruck of 9 ranks", bruckAllgather(t, 9, 2, 8),
			Totals{Steps: 2, Messages: 36, Bytes: 9 * 8 * 8, MostSent: 64, MostReceived: 64, Scratch: 128, Copies: 9 + 17}},
		{"ring of 4 ranks, steps not counted by the algorithm", ringReduce(t, 4, 8),
			Totals{Steps: 6, Messages: 24, Bytes: 24 * 8, MostSent: 48, MostReceived: 48, Scratch: 64, Copies: 4, Reductions: 12}},
	} {
		got, err := Total(c.graphs)
		if err != nil || got != c.want {
			t.Errorf("Total of %s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func TestWriteSVGErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "no graph"},
		{"rank 0 of 2, scratch 0", "graph 0 of 1 belongs to rank 0 of 2"},
		{"rank 0 of 2, scratch 0\n0 step 0: send in[0:8] to 1\nrank 1 of 2, scratch 0", "operation 0 of rank 0 sends a message that rank 1 does not receive"},
		{"rank 0 of 2, scratch 0\nrank 1 of 2, scratch 0\n0 step 0: recv out[0:8] from 0", "operation 0 of rank 1 waits for a message that rank 0 does not send"},
		{"rank 0 of 2, scratch 0\n0 step 0: send in[0:8] to 1\nrank 1 of 2, scratch 0\n0 step 0: recv out[0:4] from 0", "sends 8 bytes, operation 0 of rank 1 receives 4"},
		{"rank 0 of 2, scratch 0\n0 step 0: recv out[0:8] from 1\n1 step 0: send in[0:8] to 1 after 0\n" +
			"rank 1 of 2, scratch 0\n0 step 0: recv out[0:8] from 0\n1 step 0: send in[0:8] to 0 after 0", "the ranks deadlock"},
	} {
		graphs, err := parseText(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteSVG(io.Discard, graphs, Picture{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("drawing\n%s\nreturns the error %v; want %q", c.text, err, c.want)
		}
	}
}

// parseSVG draws graphs and returns the texts and the tooltips of the picture.
func parseSVG(t *testing.T, graphs []*Graph, p Picture) (texts, titles []string) {
	t.Helper()
	var b strings.Builder
	if err := WriteSVG(&b, graphs, p); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	in := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, titles
		}
		if err != nil {
			t.Fatalf("the picture is not valid XML: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			in = e.Name.Local
		case xml.EndElement:
			in = ""
		case xml.CharData:
			switch in {
			case "text":
				texts = append(texts, string(e))
			case "title":
				titles = append(titles, string(e))
			}
		}
	}
}

func TestPictureLabels(t *testing.T) {
	for _, c := range []struct {
		name   string
		graphs []*Graph
		p      Picture
		texts  []string
		titles []string
	}{
		{"bruck", bruckAllgather(t, 9, 2, 8), Picture{Title: "allgather <bruck>", Subtitle: "9 ranks, 2 ports"},
			[]string{"allgather <bruck>", "start", "step 1", "step 2", "0–2", "copy ×2", "the data of rank 2"},
			[]string{
				"rank 0 to rank 8, 8 bytes, tmp[0:8] to tmp[8:16]: 0",
				"rank 8 to rank 2, 24 bytes, tmp[0:24] to tmp[48:72]: 8 0 1",
				"rank 4, after step 9, out[0:8]: 0",
				"rank 4, after step 9, out[64:72]: 8",
			}},
		{"ring", ringReduce(t, 4, 8), Picture{Title: "allreduce"},
			[]string{"step 6", "Σ0–1 a", "Σ d", "combined in this step"},
			[]string{
				"rank 0 to rank 1, 8 bytes, out[0:8] to tmp[0:8]: 0a",
				"rank 2 to rank 3, 8 bytes, out[0:8] to tmp[0:8]: Σ0–2 a",
				"rank 1, after step 6, out[0:8]: Σ a",
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			texts, titles := parseSVG(t, c.graphs, c.p)
			for _, want := range c.texts {
				if !contains(texts, want) {
					t.Errorf("the picture does not show %q", want)
				}
			}
			for _, want := range c.titles {
				if !contains(titles, want) {
					t.Errorf("no tooltip says %q", want)
				}
			}
		})
	}
}

func TestNumberedPartLabels(t *testing.T) {
	n, m := 3, 4
	graphs := graphsOf(t, n, func(b *Builder, r int) {
		b.Copy(Span{Out, r * m, m}, Span{In, r * m, m})
		for k := 1; k < n; k++ {
			b.Send((r+k)%n, Span{In, (r + k) % n * m, m})
			b.Recv((r+n-k)%n, Span{Out, (r + n - k) % n * m, m})
		}
	})
	texts, titles := parseSVG(t, graphs, Picture{Parts: []int{4, 8, 12}})
	if !contains(texts, "02") || !contains(texts, "21") {
		t.Errorf("blocks are not named after sender and receiver: %q", texts)
	}
	if want := "rank 2, after step 1, out[0:4]: 02"; !contains(titles, want) {
		t.Errorf("no tooltip says %q", want)
	}
}

func TestBroadcastHasOneOrigin(t *testing.T) {
	graphs := graphsOf(t, 2, func(b *Builder, r int) {
		for k := range 3 {
			if b.Step(k + 1); r == 0 {
				b.Send(1, Span{Out, k * 8, 8})
			} else {
				b.Recv(0, Span{Out, k * 8, 8})
			}
		}
	})
	start := func(r int) []Piece { return []Piece{{Span: Span{Out, 0, 24 * (1 - r)}, From: r, To: r + 1}} }
	_, titles := parseSVG(t, graphs, Picture{Start: start})
	for k, part := range []string{"a", "b", "c"} {
		want := fmt.Sprintf("rank 0 to rank 1, 8 bytes, out[%d:%d] to out[%d:%d]: %s", k*8, k*8+8, k*8, k*8+8, part)
		if !contains(titles, want) {
			t.Errorf("no tooltip says %q", want)
		}
	}
}

func contains(list []string, want string) bool {
	for _, s := range list {
		if s == want {
			return true
		}
	}
	return false
}
