// Package documents has the figures and tables of the evaluation chapters of the documents that
// Muster is built on (docs/references.md): what each document states, under which conditions,
// and the tables of bench/groups that measure the same here. "muster bench document" runs them,
// and docs/documents shows theirs beside ours.
//
// Files: t1.json, t2.json, p1.json, p2.json and p3.json are the data; documents.go reads them;
// page.go renders the pages and picture.go their charts.
package documents
