package main

// muster man: manual pages from the commands and their flags.

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/mpi"
)

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the manual pages of all commands",
		Long: `Writes a page for section 1 of the manual for muster and for each of its commands,
such as muster-run.1. "make release" includes them in the Debian packages.`,
		Example: `  muster man /usr/local/share/man/man1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := writeManual(args[0], cmd.Root()); err != nil {
				return err
			}
			return writeOtherPages(args[0])
		},
	}
}

// writeManual writes the page of a command and of those below it.
func writeManual(dir string, c *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var b strings.Builder
	manPage(&b, c)
	name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o644); err != nil {
		return err
	}
	for _, sub := range listedCommands(c) {
		if err := writeManual(dir, sub); err != nil {
			return err
		}
	}
	return nil
}

// writeOtherPages writes a page for each other name of a command, which refers to that of the command.
func writeOtherPages(dir string) error {
	for _, row := range otherNamesOfCommands() {
		for _, name := range row.names {
			page := fmt.Sprintf(".so man1/muster-%s.1\n", row.command[0])
			if err := os.WriteFile(filepath.Join(dir, "muster-"+name+".1"), []byte(page), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

func listedCommands(c *cobra.Command) (subs []*cobra.Command) {
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			subs = append(subs, sub)
		}
	}
	return subs
}

func manPage(w io.Writer, c *cobra.Command) {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(w, ".TH %s 1 \"\" \"muster %s\" \"Muster\"\n", roff(strings.ToUpper(name)), roff(mpi.Version()))
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	fmt.Fprintf(w, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(c.UseLine()))
	if c.Long != "" {
		fmt.Fprintf(w, ".SH DESCRIPTION\n.nf\n%s\n.fi\n", roff(c.Long))
	}
	manFlags(w, "OPTIONS", c.NonInheritedFlags())
	manFlags(w, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(w, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	if subs := listedCommands(c); len(subs) > 0 {
		fmt.Fprintf(w, ".SH COMMANDS\n")
		for _, sub := range subs {
			fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(strings.ReplaceAll(sub.CommandPath(), " ", "-")+"(1)"), roff(sub.Short))
		}
	}
}

func manFlags(w io.Writer, title string, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if title != "" {
			fmt.Fprintf(w, ".SH %s\n", title)
			title = ""
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(name+" "+value)), roff(usage))
	})
}

// roff escapes text: backslashes, hyphens, and dots and quotes that begin a line.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
