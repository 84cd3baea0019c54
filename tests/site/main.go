package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "bin/site", "folder to write the site into")
	flag.Parse()
	site, err := load(os.DirFS("."))
	if err == nil {
		err = site.write(*out)
	}
	if err == nil {
		err = check(os.DirFS(*out))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s, all links lead somewhere\n", len(site.pages), *out)
}
