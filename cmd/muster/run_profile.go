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

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/prof"
)

// profileText is the value of --profile that prints, and of the flag without one;
// profileArrivals is about when ranks come to collectives, alone or before a file's name.
const (
	profileText     = "text"
	profileArrivals = "arrivals"
)

const noProfile = "muster: no profile: the job has failed"

// profileShow is what is done with the profile after the job.
type profileShow struct {
	out    io.Writer
	read   string // the file to read and show; "": none
	wrote  string // the file that rank 0 writes for the user; "": none
	remove string // a directory to remove; "": none
	// arrivals: what is read are arrivals; picture is the file to draw them into.
	arrivals bool
	picture  string
	away     bool // rank 0 may be on another host
	quiet    bool
}

// wantProfile tells the ranks of a job to make a profile.
func wantProfile(value string, cfg *launch.Config) (*profileShow, error) {
	p := &profileShow{out: cfg.Stderr, quiet: cfg.Quiet}
	here := len(cfg.Hosts) == 0
	file, named := strings.CutPrefix(value, profileArrivals+":")
	p.arrivals = value == profileArrivals || named
	switch {
	case value == "":
		return p, nil
	case p.arrivals && named && !strings.HasSuffix(file, ".svg") && !strings.HasSuffix(file, ".json"):
		return nil, fmt.Errorf("--profile=%s: give the name of a file that ends in .svg or .json, or --profile=%s alone", value, profileArrivals)
	case p.arrivals && here && strings.HasSuffix(file, ".json"):
		p.wrote = file
	case p.arrivals && here:
		if err := p.place(); err != nil {
			return nil, err
		}
		if named { // before the work, so that a bad name is told now
			if err := os.WriteFile(file, nil, 0o666); err != nil {
				return nil, fmt.Errorf("--profile=%s: %w; name a file that can be written", value, err)
			}
		}
		p.picture, value = file, profileArrivals+":"+p.read
		if !named {
			p.picture = ""
		}
	case p.arrivals:
	case value == profileText && here:
		if err := p.place(); err != nil {
			return nil, err
		}
		value = p.read
	case value == profileText:
	case !strings.HasSuffix(value, ".json"):
		return nil, fmt.Errorf("--profile=%s: give the name of a file that ends in .json, --profile=%s, or --profile alone", value, profileArrivals)
	case here:
		p.wrote = value
	}
	p.away = !here
	cfg.ExtraEnv = append(cfg.ExtraEnv, "MUSTER_PROFILE="+value)
	cfg.Env = append(cfg.Env, "MUSTER_PROFILE="+value)
	return p, nil
}

// place makes a file for rank 0 to write, to be read here.
func (p *profileShow) place() error {
	dir, err := os.MkdirTemp("", "muster-profile-")
	if err != nil {
		return fmt.Errorf("--profile: make a place for it: %w; set TMPDIR to a directory that can be written", err)
	}
	p.remove, p.read = dir, filepath.Join(dir, "profile.json")
	return nil
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
	case p.arrivals:
		p.showArrivals(text)
	default:
		sum, err := prof.Decode(text)
		if err != nil {
			fmt.Fprintf(p.out, "muster: no profile: what rank 0 has written cannot be read: %v\n", err)
			return
		}
		fmt.Fprint(p.out, "muster: ", sum.Text())
	}
}

func (p *profileShow) showArrivals(text []byte) {
	all, err := prof.DecodeArrivals(text)
	if err != nil {
		fmt.Fprintf(p.out, "muster: no profile: what rank 0 has written cannot be read: %v\n", err)
		return
	}
	fmt.Fprint(p.out, "muster: ", all.Text())
	if p.picture == "" {
		fmt.Fprintf(p.out, "The calls to which ranks came most apart, as a picture: --profile=%s:FILE.svg\n", profileArrivals)
		return
	}
	var picture strings.Builder
	if err = all.WriteSVG(&picture); err == nil {
		err = os.WriteFile(p.picture, []byte(picture.String()), 0o666)
	}
	if err != nil {
		fmt.Fprintf(p.out, "muster: no picture: %v\n", err)
	} else if !p.quiet {
		fmt.Fprintf(p.out, "muster: the picture is in %s\n", p.picture)
	}
}

// profileWord takes a word behind --profile for its value: "--profile arrivals" as
// "--profile=arrivals". A flag that may stand alone has its value after a = only, so the
// word was taken for the program, and flags behind it for its arguments.
func profileWord(cmd *cobra.Command, f *runFlags, args []string) ([]string, error) {
	if f.profile != profileText || len(args) < 2 || args[0] != profileArrivals && !strings.HasPrefix(args[0], profileArrivals+":") {
		return args, nil
	}
	f.profile = args[0]
	if err := cmd.Flags().Parse(args[1:]); err != nil {
		return nil, err
	}
	return cmd.Flags().Args(), cmd.ValidateArgs(cmd.Flags().Args())
}

// clear removes what was made for the way.
func (p *profileShow) clear() {
	if p.remove != "" {
		os.RemoveAll(p.remove)
	}
}
