package main

import (
	"cmp"
	"embed"
	"encoding/json"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed theme pages
var own embed.FS

// repository is where links to files that are not pages lead.
const repository = "https://github.com/muster-mpi/muster/blob/main/"

// ownPages is where the pages of the site alone are in the repository.
const ownPages = "tests/site/pages/"

// page is a page of the site.
type page struct {
	Source   string // below the repository
	Path     string // of the HTML file below the site
	Title    string
	Root     string // from the page to the start of the site
	Section  string
	Body     template.HTML
	Contents []heading
	text     string // for search
}

// site is all pages, and the other files that they show.
type site struct {
	pages []*page
	files map[string][]byte
}

// sections are the parts of the navigation, by the beginning of the path of a page.
var sections = [...]struct{ prefix, Title string }{
	{"from/", "I come from"}, {"guide/", "Guides"}, {"reference/", "Reference"}, {"results", "Results"}, {"decisions/", "For contributors"},
}

// load renders the pages of docs and those of the site alone.
func load(tree fs.FS) (*site, error) {
	s := &site{files: map[string][]byte{}}
	err := fs.WalkDir(tree, "docs", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(tree, p)
		if path.Ext(p) == ".md" {
			s.add(p, htmlPath(strings.TrimPrefix(p, "docs/")), string(text))
		} else if path.Ext(p) == ".svg" {
			s.files[strings.TrimPrefix(p, "docs/")] = text
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(own, "pages", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := own.ReadFile(p)
		name := strings.TrimPrefix(p, "pages/")
		s.add(ownPages+name, strings.TrimSuffix(name, ".md")+".html", string(text))
		return err
	})
	slices.SortFunc(s.pages, func(a, b *page) int { return cmp.Compare(a.Path, b.Path) })
	return s, err
}

// htmlPath is where a page of docs is on the site. The start page of docs is not that of the
// site.
func htmlPath(p string) string {
	switch {
	case p == "README.md":
		return "docs.html"
	case path.Base(p) == "README.md":
		return path.Join(path.Dir(p), "index.html")
	}
	return strings.TrimSuffix(p, ".md") + ".html"
}

func (s *site) add(source, to, text string) {
	p := &page{Source: source, Path: to, Root: strings.Repeat("../", strings.Count(to, "/")), text: text}
	r := render(text, func(target string) string { return p.linkTo(target) })
	p.Body = template.HTML(r.String())
	p.Contents = slices.DeleteFunc(slices.Clone(r.headings), func(h heading) bool { return h.Level != 2 })
	p.Title = path.Base(to)
	if len(r.headings) > 0 {
		p.Title = r.headings[0].Text
	}
	for _, x := range sections {
		if strings.HasPrefix(to, x.prefix) {
			p.Section = x.Title
		}
	}
	s.pages = append(s.pages, p)
}

// linkTo translates a link of a page: to another page, to a file of the site, or to the
// repository.
func (p *page) linkTo(target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "#") {
		return target
	}
	target, fragment, _ := strings.Cut(target, "#")
	if fragment != "" {
		fragment = "#" + fragment
	}
	full := path.Join(path.Dir(p.Source), target)
	within, inDocs := strings.CutPrefix(full, "docs/")
	if name, isOwn := strings.CutPrefix(full, ownPages); isOwn {
		within, inDocs = name, true
	}
	switch {
	case inDocs && path.Ext(within) == ".md":
		return p.Root + htmlPath(within) + fragment
	case inDocs && path.Ext(within) == ".svg", inDocs && path.Ext(within) == ".html":
		return p.Root + within + fragment
	}
	return repository + full + fragment
}

// section is a part of the navigation.
type section struct {
	Title string
	Pages []*page
}

// navigation lists the pages by section. Of large sections only the index is listed.
func (s *site) navigation() (list []section) {
	for _, x := range sections {
		one := section{Title: x.Title}
		for _, p := range s.pages {
			if p.Section == x.Title && (x.prefix != "decisions/" && !strings.HasPrefix(p.Path, "results/") || path.Base(p.Path) == "index.html") {
				one.Pages = append(one.Pages, p)
			}
		}
		list = append(list, one)
	}
	return list
}

// found is an entry of the index of search.
type found struct {
	Title string `json:"t"`
	Path  string `json:"p"`
	Text  string `json:"x"`
}

// write writes the site into a folder, which it replaces.
func (s *site) write(folder string) error {
	tmpl, err := template.ParseFS(own, "theme/page.html")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	files := map[string][]byte{}
	for name, content := range s.files {
		files[name] = content
	}
	for _, name := range []string{"style.css", "search.js"} {
		if files[name], err = own.ReadFile("theme/" + name); err != nil {
			return err
		}
	}
	var index []found
	navigation := s.navigation()
	for _, p := range s.pages {
		var b strings.Builder
		if err := tmpl.Execute(&b, map[string]any{"Page": p, "Sections": navigation}); err != nil {
			return err
		}
		files[p.Path] = []byte(b.String())
		index = append(index, found{p.Title, p.Path, strings.Join(strings.Fields(plain(comment.ReplaceAllString(p.text, ""))), " ")})
	}
	if files["search.json"], err = json.Marshal(index); err != nil {
		return err
	}
	for name, content := range files {
		to := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
