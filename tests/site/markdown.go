package main

// The part of Markdown that docs uses: headings, paragraphs, tables, fenced code, lists, block
// quotes, links, images, code, emphasis, anchors and comments.

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"
)

// renderer writes a page as HTML.
type renderer struct {
	strings.Builder
	link     func(target string) string // of the page, for the site
	anchors  map[string]int
	headings []heading
	lines    []string
	at       int
}

// heading is a heading of the page, for its list of contents and for search.
type heading struct {
	Level    int
	Text, ID string
}

var (
	headingLine = regexp.MustCompile(`^(#{1,6}) +(.*)$`)
	listItem    = regexp.MustCompile(`^( *)([-*]|\d+\.) +(.*)$`)
	codeSpan    = regexp.MustCompile("`([^`]+)`")
	image       = regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)
	link        = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)
	bareLink    = regexp.MustCompile(`(^|[\s(])(https?://[^\s<)]+[^\s<).,;])`)
	bold        = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	italic      = regexp.MustCompile(`(^|[\s(])\*([^*\s][^*]*)\*`)
	anchor      = regexp.MustCompile(`&lt;a id=&#34;([^&]+)&#34;&gt;&lt;/a&gt;`)
	nameEnd     = regexp.MustCompile(`([_./,=])(\pL)`)
	comment     = regexp.MustCompile(`(?s)<!--.*?-->`)
)

// render returns a page as HTML.
func render(text string, linkTo func(string) string) *renderer {
	r := &renderer{link: linkTo, anchors: map[string]int{}, lines: strings.Split(comment.ReplaceAllString(text, ""), "\n")}
	for r.at < len(r.lines) {
		r.block()
	}
	return r
}

// block writes what begins at the current line.
func (r *renderer) block() {
	line := r.lines[r.at]
	switch {
	case strings.TrimSpace(line) == "":
		r.at++
	case strings.HasPrefix(line, "```"):
		r.code()
	case headingLine.MatchString(line):
		r.heading(headingLine.FindStringSubmatch(line))
	case strings.HasPrefix(line, "|"):
		r.table()
	case listItem.MatchString(line):
		r.list(len(listItem.FindStringSubmatch(line)[1]))
	case strings.HasPrefix(line, "> "):
		fmt.Fprintf(r, "<blockquote><p>%s</p></blockquote>\n", r.inline(r.take(func(l string) bool { return strings.HasPrefix(l, "> ") }, "> ")))
	case line == "---":
		r.WriteString("<hr>\n")
		r.at++
	default:
		fmt.Fprintf(r, "<p>%s</p>\n", r.inline(r.take(r.continues, "")))
	}
}

// take joins lines as long as a condition holds.
func (r *renderer) take(more func(string) bool, prefix string) string {
	var parts []string
	for first := true; r.at < len(r.lines) && (first || more(r.lines[r.at])); first = false {
		parts = append(parts, strings.TrimPrefix(r.lines[r.at], prefix))
		r.at++
	}
	return strings.Join(parts, "\n")
}

// continues reports whether a line belongs to the paragraph before it.
func (r *renderer) continues(line string) bool {
	return strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "```") && !headingLine.MatchString(line) && !strings.HasPrefix(line, "|") && !listItem.MatchString(line)
}

func (r *renderer) code() {
	language, _, _ := strings.Cut(strings.TrimPrefix(r.lines[r.at], "```"), " ")
	r.at++
	var lines []string
	for ; r.at < len(r.lines) && !strings.HasPrefix(r.lines[r.at], "```"); r.at++ {
		lines = append(lines, r.lines[r.at])
	}
	r.at++
	fmt.Fprintf(r, "<pre><code class=\"%s\">%s</code></pre>\n", html.EscapeString(language), html.EscapeString(strings.Join(lines, "\n")))
}

func (r *renderer) heading(m []string) {
	r.at++
	h := heading{Level: len(m[1]), Text: plain(m[2])}
	h.ID = slug(h.Text)
	if n := r.anchors[h.ID]; n > 0 {
		h.ID = fmt.Sprintf("%s-%d", h.ID, n)
	}
	r.anchors[slug(h.Text)]++
	r.headings = append(r.headings, h)
	fmt.Fprintf(r, "<h%d id=\"%s\">%s</h%[1]d>\n", h.Level, h.ID, r.inline(m[2]))
}

// slug is the anchor of a heading, as GitHub makes it.
func slug(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '-' || c == '_':
			b.WriteRune(c)
		case c == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// plain returns a text without its markup.
func plain(text string) string {
	text = image.ReplaceAllString(text, "$1")
	text = link.ReplaceAllString(text, "$1")
	return strings.NewReplacer("`", "", "**", "").Replace(text)
}

func (r *renderer) table() {
	r.WriteString("<div class=\"table\"><table>\n")
	for row := 0; r.at < len(r.lines) && strings.HasPrefix(r.lines[r.at], "|"); r.at++ {
		cells := cellsOf(r.lines[r.at])
		if row++; row == 2 {
			continue // the line of dashes
		}
		tag := "td"
		if row == 1 {
			tag = "th"
		}
		r.WriteString("<tr>")
		for _, c := range cells {
			fmt.Fprintf(r, "<%s>%s</%[1]s>", tag, r.inline(c))
		}
		r.WriteString("</tr>\n")
	}
	r.WriteString("</table></div>\n")
}

// cellsOf splits a row at its bars, except those that are escaped.
func cellsOf(line string) (cells []string) {
	const bar = "\x00"
	line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, bar)
	for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
		cells = append(cells, strings.TrimSpace(strings.ReplaceAll(c, bar, "|")))
	}
	return cells
}

func (r *renderer) list(indent int) {
	tag := listTag(r.lines[r.at])
	fmt.Fprintf(r, "<%s>\n", tag)
	for r.at < len(r.lines) {
		m := listItem.FindStringSubmatch(r.lines[r.at])
		if m == nil || len(m[1]) < indent || len(m[1]) == indent && listTag(r.lines[r.at]) != tag {
			break
		}
		if len(m[1]) > indent {
			r.list(len(m[1]))
			continue
		}
		r.lines[r.at] = m[3]
		fmt.Fprintf(r, "<li>%s</li>\n", r.inline(r.take(r.continues, "")))
		if r.at+1 < len(r.lines) && strings.TrimSpace(r.lines[r.at]) == "" && listItem.MatchString(r.lines[r.at+1]) {
			r.at++ // an empty line between items
		}
	}
	fmt.Fprintf(r, "</%s>\n", tag)
}

// listTag returns the kind of list that an item is of.
func listTag(line string) string {
	if m := listItem.FindStringSubmatch(line); m[2] == "-" || m[2] == "*" {
		return "ul"
	}
	return "ol"
}

// breakable returns code as HTML, with places where a line may end: the columns of tables are as
// wide as the longest part of a name, not as the name.
func breakable(code string) string {
	return nameEnd.ReplaceAllString(html.EscapeString(code), "$1<wbr>$2")
}

// inline writes the markup within a paragraph. Code is set aside, because nothing in it is markup.
func (r *renderer) inline(text string) string {
	var spans []string
	text = codeSpan.ReplaceAllStringFunc(text, func(s string) string {
		spans = append(spans, "<code>"+breakable(strings.Trim(s, "`"))+"</code>")
		return fmt.Sprintf("\x00%d\x00", len(spans)-1)
	})
	text = html.EscapeString(text)
	text = anchor.ReplaceAllString(text, `<a id="$1"></a>`)
	text = image.ReplaceAllStringFunc(text, func(s string) string {
		m := image.FindStringSubmatch(s)
		return fmt.Sprintf(`<a class="picture" href="%[1]s"><img src="%[1]s" alt="%[2]s"></a>`, r.link(m[2]), m[1])
	})
	text = link.ReplaceAllStringFunc(text, func(s string) string {
		m := link.FindStringSubmatch(s)
		return fmt.Sprintf(`<a href="%s">%s</a>`, r.link(m[2]), m[1])
	})
	text = bareLink.ReplaceAllString(text, `$1<a href="$2">$2</a>`)
	text = bold.ReplaceAllString(text, "<strong>$1</strong>")
	text = italic.ReplaceAllString(text, "$1<em>$2</em>")
	text = strings.ReplaceAll(text, `\*`, "*")
	for i, s := range spans {
		text = strings.Replace(text, fmt.Sprintf("\x00%d\x00", i), s, 1)
	}
	return text
}
