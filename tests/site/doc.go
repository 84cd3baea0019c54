// Command site builds a static site from docs: make site. The pages work without JavaScript,
// except search. After building it follows every link within the site, and fails if one leads
// nowhere, if an image has no alternative text, or if a page has no way back to the start.
//
//	main.go      flags
//	build.go     from files to pages: which there are, their links and the index of search
//	markdown.go  the part of Markdown that docs uses, as HTML
//	check.go     links, images and ways back
//	theme        templates, style and the script of search
//	pages        pages of the site alone: the landing page, and one for each way to get here
package main
