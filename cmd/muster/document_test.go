//go:build !windows

package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The tables of docs/reference/commands.md are made from the commands and their flags.

var writeDocument = flag.Bool("document.write", false, "write the tables of "+commandsPage+" anew")

const (
	commandsPage  = "docs/reference/commands.md"
	commandsFile  = "../../" + commandsPage
	commandsBegin = "<!-- commands -->\n"
	commandsEnd   = "<!-- end -->\n"
)

func TestCommandsPage(t *testing.T) {
	page, err := os.ReadFile(commandsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), commandsBegin)
	_, after, ok2 := strings.Cut(rest, commandsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q", commandsPage, commandsBegin, commandsEnd)
	}
	var b strings.Builder
	for _, c := range newRoot().Commands() {
		documentCommand(&b, c)
	}
	want := before + commandsBegin + b.String() + commandsEnd + after
	if want == string(page) {
		return
	}
	if !*writeDocument {
		t.Fatalf("%s is not what the commands document: go test ./cmd/muster -run TestCommandsPage -document.write, and review the difference", commandsPage)
	}
	if err := os.WriteFile(commandsFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// documentCommand writes a section for a command: its flags, its sub-commands, and the further
// flags of these. Where several sub-commands have a flag, its shortest explanation is shown.
func documentCommand(b *strings.Builder, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	fmt.Fprintf(b, "## muster %s\n\n%s.", c.Name(), c.Short)
	if strings.Contains(c.Use, " ") {
		fmt.Fprintf(b, " `muster %s`", c.Use)
	}
	b.WriteString("\n\n")
	own, rows := map[string]string{}, map[string]string{}
	addFlags(own, c)
	tableOfFlags(b, own)
	var families []family
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			families = addCommand(families, sub)
			addFlags(rows, sub)
		}
	}
	if len(families) > 0 {
		b.WriteString("|command|purpose|\n|---|---|\n")
		for _, f := range families {
			fmt.Fprintf(b, "|%s|%s|\n", strings.Join(f.uses, ", "), cell(f.purpose()))
		}
		b.WriteString("\n")
	}
	maps.DeleteFunc(rows, func(name, row string) bool { return row == own[name] })
	if len(rows) > 0 {
		fmt.Fprintf(b, "`muster %s NAME --help` shows which of these flags a command has:\n\n", c.Name())
	}
	tableOfFlags(b, rows)
}

// family is sub-commands that do the same for one collective each: they share a row.
type family struct {
	uses     []string
	of       string // the collective of the first; "": none
	single   string // its purpose
	template string // purpose without the collective
}

// addCommand adds a sub-command to the family whose purpose differs by the end of the name,
// which is that of a collective.
func addCommand(families []family, c *cobra.Command) []family {
	use := "`" + strings.TrimSuffix(c.Use, " [flags]") + "`"
	f := family{[]string{use}, "", c.Short, c.Short}
	for of := c.Name(); len(of) > 3; of = of[1:] {
		if strings.Contains(c.Short, " "+of) {
			f.of, f.template = of, strings.Replace(c.Short, " "+of, " COLLECTIVE", 1)
			break
		}
	}
	for i := range families {
		if f.of != "" && families[i].template == f.template {
			families[i].uses = append(families[i].uses, use)
			return families
		}
	}
	return append(families, f)
}

func (f *family) purpose() string {
	if len(f.uses) > 1 {
		return f.template
	}
	return f.single
}

func tableOfFlags(b *strings.Builder, rows map[string]string) {
	if len(rows) == 0 {
		return
	}
	b.WriteString("|flag|meaning|\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		b.WriteString(rows[name])
	}
	b.WriteString("\n")
}

// addFlags adds a row for each flag of a command.
func addFlags(rows map[string]string, c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		short := ""
		if f.Shorthand != "" {
			short = "`-" + f.Shorthand + "`, "
		}
		if name != "" {
			name = " " + name
		}
		switch f.DefValue {
		case "", "0", "false", "[]", "0s":
		default:
			usage += " (default " + f.DefValue + ")"
		}
		row := fmt.Sprintf("|%s`--%s%s`|%s|\n", short, f.Name, name, cell(usage))
		if was := rows[f.Name]; was == "" || len(row) < len(was) {
			rows[f.Name] = row
		}
	})
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
