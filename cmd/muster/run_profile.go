package main

// muster run --profile. The ranks collect the profile when the job ends
// (mpi.Config.Profile). On one host rank 0 writes it to a file; muster run reads the
// file and prints it unlabelled after all output of the ranks. On several hosts rank 0
// may be on another host and prints the profile itself.

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/prof"
)

// profileText is the value of --profile that prints one screen, and the default of the flag;
// profileFull prints all. profileArrivals, alone or followed by a file name, selects the
// arrival times.
const (
	profileText     = "text"
	profileFull     = "full"
	profileArrivals = "arrivals"
)

// isProfileValue reports whether a word behind --profile is its value, and not the program.
func isProfileValue(word string) bool {
	return word == profileText || word == profileFull || word == profileArrivals || strings.HasPrefix(word, profileArrivals+":") || strings.HasSuffix(word, ".json") || strings.HasSuffix(word, ".html")
}

const noProfile = "muster: no profile: the job has failed"

// profileShow describes what happens with the profile after the job.
type profileShow struct {
	out    io.Writer
	read   string // the file to read and show; "": none
	wrote  string // the file that rank 0 writes for the user; "": none
	remove string // a directory to remove; "": none
	// arrivals reports whether the file holds arrival times; picture is the file to
	// draw them into.
	arrivals bool
	full     bool // not only one screen
	// page is the file to write as HTML, from the profile and the trace; command is its title.
	page, trace, command string
	picture              string
	away                 bool // rank 0 may be on another host
	quiet                bool
}

// wantProfile sets the job up to collect a profile.
func wantProfile(value string, cfg *launch.Config) (*profileShow, error) {
	p := &profileShow{out: cfg.Output.Stderr, quiet: cfg.Output.Quiet}
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
		if err := p.makeFile(); err != nil {
			return nil, err
		}
		if named { // fail before the job starts if the name is bad
			if err := os.WriteFile(file, nil, 0o666); err != nil {
				return nil, fmt.Errorf("--profile=%s: %w; give the name of a writable file", value, err)
			}
		}
		p.picture, value = file, profileArrivals+":"+p.read
		if !named {
			p.picture = ""
		}
	case p.arrivals:
	case strings.HasSuffix(value, ".html") && !here:
		return nil, fmt.Errorf("--profile %s: a page is made of the profile and the trace of ranks on this host; on several hosts use --profile full and --trace", value)
	case p.isText(value) && here, strings.HasSuffix(value, ".html"):
		if strings.HasSuffix(value, ".html") {
			p.page, p.command = value, filepath.Base(cfg.Prog)
		}
		if err := p.makeFile(); err != nil {
			return nil, err
		}
		value = p.read
	case p.isText(value):
	case !strings.HasSuffix(value, ".json"):
		return nil, fmt.Errorf("--profile=%s: give the name of a file that ends in .json or .html, --profile=%s, --profile=%s, or --profile alone", value, profileFull, profileArrivals)
	case here:
		p.wrote = value
	}
	p.away = !here
	if p.page != "" {
		if err := p.wantPage(cfg); err != nil {
			return nil, err
		}
	}
	cfg.ExtraEnv = append(cfg.ExtraEnv, "MUSTER_PROFILE="+value)
	cfg.Env = append(cfg.Env, "MUSTER_PROFILE="+value)
	return p, nil
}

// wantPage makes the ranks write a trace too, unless --trace names a file for it.
func (p *profileShow) wantPage(cfg *launch.Config) error {
	if err := os.WriteFile(p.page, nil, 0o666); err != nil { // before the job starts
		return fmt.Errorf("--profile %s: %w; give the name of a writable file", p.page, err)
	}
	p.trace = filepath.Join(p.remove, "trace.json")
	cfg.ExtraEnv = append(cfg.ExtraEnv, "MUSTER_TRACE="+p.trace)
	cfg.Env = append(cfg.Env, "MUSTER_TRACE="+p.trace)
	return nil
}

// writePage writes the page.
func (p *profileShow) writePage(sum *prof.Summary) {
	t, err := readTrace(p.trace)
	var page strings.Builder
	if err == nil {
		err = writeProfilePage(&page, p.command, sum, t)
	}
	if err == nil {
		err = os.WriteFile(p.page, []byte(page.String()), 0o666)
	}
	if err != nil {
		fmt.Fprintf(p.out, "muster: no page: %v\n", err)
	} else if !p.quiet {
		fmt.Fprintf(p.out, "muster: the profile is in %s; open it with a browser\n", p.page)
	}
}

// isText reports whether the profile is printed, and records how.
func (p *profileShow) isText(value string) bool {
	p.full = value == profileFull
	return p.full || value == profileText
}

// makeFile chooses a file that rank 0 writes and this process reads.
func (p *profileShow) makeFile() error {
	dir, err := os.MkdirTemp("", "muster-profile-")
	if err != nil {
		return fmt.Errorf("--profile: create a temporary directory: %w; set TMPDIR to a writable directory", err)
	}
	p.remove, p.read = dir, filepath.Join(dir, "profile.json")
	return nil
}

// show prints the profile of a job that has ended, or why there is none.
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
		fmt.Fprintln(p.out, "muster: no profile: rank 0 has written none. Programs that use Muster write it in Finalize, or at the end of mpi.Main")
	case p.wrote != "":
		if !p.quiet {
			fmt.Fprintf(p.out, "muster: the profile is in %s\n", p.wrote)
		}
	case p.arrivals:
		p.showArrivals(text)
	default:
		sum, err := prof.Decode(text)
		if err != nil {
			fmt.Fprintf(p.out, "muster: no profile: decode the file from rank 0: %v\n", err)
			return
		}
		if p.page != "" {
			p.writePage(sum)
			return
		}
		text := sum.Screen()
		if p.full {
			text = sum.Text()
		}
		fmt.Fprint(p.out, "muster: ", text)
	}
}

func (p *profileShow) showArrivals(text []byte) {
	all, err := prof.DecodeArrivals(text)
	if err != nil {
		fmt.Fprintf(p.out, "muster: no profile: decode the file from rank 0: %v\n", err)
		return
	}
	fmt.Fprint(p.out, "muster: ", all.Text())
	if p.picture == "" {
		fmt.Fprintf(p.out, "To draw the most imbalanced calls as a picture: --profile=%s:FILE.svg\n", profileArrivals)
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

// clear removes the temporary directory.
func (p *profileShow) clear() {
	if p.remove != "" {
		os.RemoveAll(p.remove)
	}
}
