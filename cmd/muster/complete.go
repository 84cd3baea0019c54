package main

// Completion of values in the shell (muster completion bash): hosts, labs, algorithms,
// devices, bindings. Commands offer values of their own (offerValues); other flags are
// recognized by their names.

import (
	"bufio"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/lab"
)

// flagValues are the values of flags that have the same ones in all commands, by name.
func flagValues() map[string]func() []string {
	words := func(s ...string) func() []string { return func() []string { return s } }
	return map[string]func() []string{
		"hosts":       completeHosts,
		"lab":         lab.Names,
		"name":        lab.Names,
		"algorithm":   completeAlgorithms,
		"collectives": completeCollectives,
		"bind-to":     words("auto", "core", "socket", "numa", "none"),
		"map-by":      words("slot", "node", "traffic=", "socket", "numa", "core"),
		"label":       words("auto", "always", "never"),
		"on-stuck":    words(stuckReport, stuckEnd),
		"profile":     words(profileText, profileFull, profileArrivals),
		"away":        words("auto", "compute", "sleep"),
		"rate":        words("100mbit", "1gbit", "10gbit"),
	}
}

// completeValues adds the completion of values to a command and those below it.
func completeValues(c *cobra.Command) {
	values := flagValues()
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { completeFlag(c, f, values[f.Name]) })
	c.PersistentFlags().VisitAll(func(f *pflag.Flag) { completeFlag(c, f, values[f.Name]) })
	if use := strings.Fields(c.Use); len(use) > 1 && c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 {
		switch use[1] {
		case "HOST":
			c.ValidArgsFunction = firstArg(completeLabHosts)
		case "COLLECTIVE", "[COLLECTIVE]":
			c.ValidArgsFunction = firstArg(completeCollectives)
		}
	}
	for _, sub := range c.Commands() {
		completeValues(sub)
	}
}

func completeFlag(c *cobra.Command, f *pflag.Flag, values func() []string) {
	if values == nil || f.Value.Type() == "int" || f.Value.Type() == "bool" {
		return // of lab up, --hosts is a number
	}
	// The error means that the command has registered its own.
	_ = c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return continueList(begun, values()), cobra.ShellCompDirectiveNoFileComp
	})
}

// offerValues makes the shell offer the values of a flag in one command, given as its
// usage lists them.
func offerValues(c *cobra.Command, flag, values string) {
	completeFlag(c, c.Flags().Lookup(flag), func() []string { return strings.Split(values, ", ") })
}

func firstArg(values func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return continueList(begun, values()), cobra.ShellCompDirectiveNoFileComp
	}
}

// continueList returns the values that complete the last item of a list with commas,
// each behind the items before it.
func continueList(begun string, values []string) (out []string) {
	head, last := "", begun
	if i := strings.LastIndex(begun, ","); i >= 0 {
		head, last = begun[:i+1], begun[i+1:]
	}
	for _, v := range values {
		if strings.HasPrefix(v, last) {
			out = append(out, head+v)
		}
	}
	return out
}

func completeCollectives() (names []string) {
	for _, a := range coll.Algorithms() {
		names = append(names, a.Kind.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func completeAlgorithms() (names []string) {
	for _, a := range coll.Algorithms() {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func completeLabHosts() []string {
	names := map[string]bool{"all": true}
	for _, name := range lab.Names() {
		if l, err := lab.Find(name); err == nil {
			for _, h := range l.Hosts() {
				names[h] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// completeHosts are the hosts in the user's configuration of ssh and its list of keys.
func completeHosts() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	eachLine(filepath.Join(home, ".ssh", "config"), func(words []string) {
		if !strings.EqualFold(words[0], "Host") {
			return
		}
		for _, h := range words[1:] {
			names[h] = !strings.ContainsAny(h, "*?!")
		}
	})
	eachLine(filepath.Join(home, ".ssh", "known_hosts"), func(words []string) {
		for h := range strings.SplitSeq(words[0], ",") {
			names[h] = !strings.ContainsAny(h, "|[@") // hashed, with a port, or a marker
		}
	})
	maps.DeleteFunc(names, func(_ string, usable bool) bool { return !usable })
	return slices.Sorted(maps.Keys(names))
}

func eachLine(file string, fn func(words []string)) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 0 {
			fn(words)
		}
	}
}
