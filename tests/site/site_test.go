package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// TestSite builds the site of the tree and follows its links.
func TestSite(t *testing.T) {
	s, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := s.write(folder); err != nil {
		t.Fatal(err)
	}
	if err := check(os.DirFS(folder)); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"index.html", "docs.html", "guide/start.html", "from/mpi4py.html", "decisions/index.html", "search.json", "pictures/overview.svg"} {
		if _, err := os.Stat(folder + "/" + name); err != nil {
			t.Error(err)
		}
	}
}

func TestRender(t *testing.T) {
	for text, want := range map[string]string{
		"# A `b` & c":                         "<h1 id=\"a-b--c\">A <code>b</code> &amp; c</h1>\n",
		"one\ntwo\n\nthree":                   "<p>one\ntwo</p>\n<p>three</p>\n",
		"a **b** and *c* [d](e.md#f)":         "<p>a <strong>b</strong> and <em>c</em> <a href=\"<e.md#f>\">d</a></p>\n",
		"`<a>`, `*x*`":                        "<p><code>&lt;a&gt;</code>, <code>*x*</code></p>\n",
		"![alt](p.svg)":                       "<p><a class=\"picture\" href=\"<p.svg>\"><img src=\"<p.svg>\" alt=\"alt\"></a></p>\n",
		"|a|b|\n|---|---|\n|1|`x\\|y`|":       "<div class=\"table\"><table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td><code>x|y</code></td></tr>\n</table></div>\n",
		"- a\n  more\n- b\n  - c\n\n1. d":     "<ul>\n<li>a\n  more</li>\n<li>b</li>\n<ul>\n<li>c</li>\n</ul>\n</ul>\n<ol>\n<li>d</li>\n</ol>\n",
		"```go\nif a < b {\n```\nafter":       "<pre><code class=\"go\">if a &lt; b {</code></pre>\n<p>after</p>\n",
		"<!-- setup: x\ny -->\ntext":          "<p>text</p>\n",
		"<a id=\"001\"></a>**001 T.** x":      "<p><a id=\"001\"></a><strong>001 T.</strong> x</p>\n",
		"`A_B.c`, `x = 1.`":                   "<p><code>A_<wbr>B.<wbr>c</code>, <code>x = 1.</code></p>\n",
		"> quoted":                            "<blockquote><p>quoted</p></blockquote>\n",
		"see https://example.org/x, or (not)": "<p>see <a href=\"https://example.org/x\">https://example.org/x</a>, or (not)</p>\n",
	} {
		if got := render(text, func(s string) string { return "<" + s + ">" }).String(); got != want {
			t.Errorf("%q is\n%s\nwant\n%s", text, got, want)
		}
	}
}

func TestCheckFindsFaults(t *testing.T) {
	page := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const back = `<a href="index.html">home</a>`
	for text, want := range map[string]string{
		back:                                         "",
		`<a href="b.html#x">b</a>` + back:            "",
		`<a href="c.html">c</a>` + back:              "there is no c.html",
		`<a href="b.html#y">b</a>` + back:            `b.html has no anchor "y"`,
		`<img src="p.svg" alt="">` + back:            "no alternative text",
		`<a href="b.html">b</a>`:                     "no link leads back",
		`<a href="https://example.org">x</a>` + back: "",
	} {
		site := fstest.MapFS{"index.html": page(back), "b.html": page(`<h2 id="x">x</h2>` + back), "p.svg": page(""), "a.html": page(text)}
		err := check(site)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
