package main

// --json of the commands that print one document.

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
)

// addJSONFlag adds --json to a command that prints a document.
func addJSONFlag(cmd *cobra.Command, on *bool) {
	cmd.Flags().BoolVar(on, "json", false, "print JSON")
}

// printJSON prints a value as an indented JSON document.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
