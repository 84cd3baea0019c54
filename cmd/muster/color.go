package main

// Colors of what people read first: the levels of doctor and the word before an error.

import (
	"io"
	"os"
	"runtime"
)

// Sequences of ECMA-48 8.3.117 (SGR).
const (
	colorOff    = "\x1b[0m"
	colorRed    = "\x1b[31m"
	colorGreen  = "\x1b[32m"
	colorYellow = "\x1b[33m"
)

// usesColor reports whether what is written to w appears on a terminal and may be colored
// (https://no-color.org).
func usesColor(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows" && onTerminal(w)
}

// onTerminal reports whether w is a terminal, or another device of characters: what is written
// to these is not kept.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// paint returns text in a color if w may have it.
func paint(w io.Writer, color, text string) string {
	if !usesColor(w) {
		return text
	}
	return color + text + colorOff
}
