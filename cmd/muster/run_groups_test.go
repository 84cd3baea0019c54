package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/internal/launch"
)

// Each group of flags sets its part of the job, and no flag is defined twice.
func TestRunFlagsSetTheJob(t *testing.T) {
	parse := func(words string) (cfg launch.Config, err error) {
		var f runFlags
		fl := pflag.NewFlagSet("run", pflag.ContinueOnError)
		f.define(fl)
		if err := fl.Parse(strings.Fields(words)); err != nil {
			return cfg, err
		}
		err = f.configure(fl, []string{"sh"}, &cfg)
		return cfg, err
	}
	cfg, err := parse("-n 3 --spares 1 --bind-to none --report-bindings -q --label never --timeout 10m --stuck-after 0 --grace 2s")
	if err != nil {
		t.Fatal(err)
	}
	if want := (launch.Limits{Job: 10 * time.Minute, Stuck: -1, Grace: 2 * time.Second}); cfg.Limits != want {
		t.Errorf("the limits are %+v, want %+v", cfg.Limits, want)
	}
	if cfg.Ranks != 3 || cfg.Spares != 1 || cfg.Bind != launch.BindNone || !cfg.ReportBindings {
		t.Errorf("the ranks and their cores are not those of the flags: %+v", cfg)
	}
	if want := (launch.Output{Label: launch.LabelNever, Quiet: true}); cfg.Output != want {
		t.Errorf("the output is %+v, want %+v", cfg.Output, want)
	}
	if cfg, err = parse("--hosts a:2,b --agent-path /opt/muster --tree-width 4 --copy --start-timeout 0"); err != nil {
		t.Fatal(err)
	}
	if len(cfg.Hosts) != 2 || cfg.Remote.AgentPath != "/opt/muster" || cfg.Remote.TreeWidth != 4 || !cfg.Remote.Copy || cfg.Limits.Start != -1 {
		t.Errorf("the hosts are not those of the flags: %+v", cfg)
	}
	for words, want := range map[string]string{
		"--spares -1":                    "use 0 or more",
		"-n 0":                           "at least one rank",
		"-q -v":                          "exclude each other",
		"--grace -1s":                    "give a time such as 5s, or 0 for the default",
		"--timeout -1s":                  "give a time such as 10m",
		"--start-timeout -1s":            "0 for no limit",
		"--on-stuck never":               "use report or end",
		"--on-stuck end --stuck-after 0": "needs a time",
		"--copy":                         "needs --hosts or --hostfile",
		"--tree-width 3":                 "needs --hosts or --hostfile",
		"--ranks-per-host 0":             "use 1 or more",
		"--hosts a --tree-width 0":       "use 1 or more",
		"--hosts a --hostfile b":         "exclude each other",
		"--bind-to elsewhere":            "--bind-to",
		"--map-by moon":                  "--map-by",
		"--label sometimes":              "--label",
		"--env =x":                       "give NAME=VALUE",
	} {
		if _, err := parse(words); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("run %s must be refused with %q: %v", words, want, err)
		}
	}
}
