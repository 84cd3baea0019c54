package main

// muster run --profile. The ranks make the profile when the job ends (mpi.Config.Profile).
// On one host rank 0 writes it to a file, which is read here and shown after all output
// of the ranks, without marks before its lines. On several hosts rank 0 may be
// elsewhere: it prints the profile itself.

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/prof"
)

// profileText is the value of --profile that prints, and of the flag without one.
const profileText = "text"

const noProfile = "muster: no profile: the job has failed"

// profileShow is what is done with the profile after the job.
type profileShow struct {
	out    io.Writer
	read   string // the file to read and show; "": none
	wrote  string // the file that rank 0 writes for the user; "": none
	remove string // a directory to remove; "": none
	away   bool   // rank 0 may be on another host
	quiet  bool
}

// wantProfile tells the ranks of a job to make a profile.
func wantProfile(value string, cfg *launch.Config) (*profileShow, error) {
	p := &profileShow{out: cfg.Stderr, quiet: cfg.Quiet}
	here := len(cfg.Hosts) == 0
	switch {
	case value == "":
		return p, nil
	case value == profileText && here:
		dir, err := os.MkdirTemp("", "muster-profile-")
		if err != nil {
			return nil, fmt.Errorf("--profile: make a place for it: %w; set TMPDIR to a directory that can be written", err)
		}
		p.remove, p.read = dir, filepath.Join(dir, "profile.json")
		value = p.read
	case value == profileText:
	case !strings.HasSuffix(value, ".json"):
		return nil, fmt.Errorf("--profile=%s: give the name of a file that ends in .json, or --profile alone", value)
	case here:
		p.wrote = value
	}
	p.away = !here
	cfg.ExtraEnv = append(cfg.ExtraEnv, "MUSTER_PROFILE="+value)
	cfg.Env = append(cfg.Env, "MUSTER_PROFILE="+value)
	return p, nil
}

// show shows the profile of a job that has ended, or says why there is none.
func (p *profileShow) show(status int) {
	file := p.read
	if file == "" {
		file = p.wrote
	}
	if file == "" {
		if p.away && status != 0 {
			fmt.Fprintln(p.out, noProfile)
		}
		return
	}
	text, err := os.ReadFile(file)
	switch {
	case (err != nil || len(text) == 0) && status != 0:
		fmt.Fprintln(p.out, noProfile)
	case err != nil || len(text) == 0:
		fmt.Fprintln(p.out, "muster: no profile: rank 0 has written none. Programs that use Muster do, when they leave the job (Finalize, or the end of mpi.Main)")
	case p.wrote != "":
		if !p.quiet {
			fmt.Fprintf(p.out, "muster: the profile is in %s\n", p.wrote)
		}
	default:
		sum, err := prof.Decode(text)
		if err != nil {
			fmt.Fprintf(p.out, "muster: no profile: what rank 0 has written cannot be read: %v\n", err)
			return
		}
		fmt.Fprint(p.out, "muster: ", sum.Text())
	}
}

// clear removes what was made for the way.
func (p *profileShow) clear() {
	if p.remove != "" {
		os.RemoveAll(p.remove)
	}
}
