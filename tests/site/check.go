package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	hrefs  = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	ids    = regexp.MustCompile(` id="([^"]*)"`)
	images = regexp.MustCompile(`<img [^>]*>`)
	alt    = regexp.MustCompile(` alt="[^"]+"`)
)

// check follows the links within a site.
func check(site fs.FS) error {
	anchors, pages := map[string]map[string]bool{}, map[string]string{}
	err := fs.WalkDir(site, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(p) != ".html" {
			return err
		}
		text, err := fs.ReadFile(site, p)
		pages[p], anchors[p] = string(text), map[string]bool{"": true}
		for _, m := range ids.FindAllStringSubmatch(pages[p], -1) {
			anchors[p][m[1]] = true
		}
		return err
	})
	faults := []error{err}
	for p, text := range pages {
		back := false
		for _, m := range hrefs.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target, fragment, _ := strings.Cut(m[1], "#")
			to := p
			if target != "" {
				to = path.Join(path.Dir(p), target)
			}
			back = back || to == "index.html"
			if _, err := fs.Stat(site, to); err != nil {
				faults = append(faults, fmt.Errorf("%s: link to %s: there is no %s", p, m[1], to))
			} else if known := anchors[to]; known != nil && !known[fragment] {
				faults = append(faults, fmt.Errorf("%s: link to %s: %s has no anchor %q", p, m[1], to, fragment))
			}
		}
		if !back {
			faults = append(faults, fmt.Errorf("%s: no link leads back to the start", p))
		}
		for _, img := range images.FindAllString(text, -1) {
			if !alt.MatchString(img) {
				faults = append(faults, fmt.Errorf("%s: %s has no alternative text", p, img))
			}
		}
	}
	return errors.Join(faults...)
}
