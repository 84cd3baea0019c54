//go:build !windows

package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

// asRank makes the test binary a rank that runs chatter; the value "fail" makes it fail,
// and rankTalks makes it send messages until it is ended.
const (
	asRank    = "TEST_AS_RANK"
	rankTalks = "talk"
)

// chatter sends three messages from rank 0 to every other rank.
func chatter(world *mpi.Comm) error {
	buf := make([]byte, 100)
	for os.Getenv(asRank) == rankTalks {
		if err := world.Barrier(); err != nil {
			return err
		}
		if _, err := mpi.SendrecvReplace(world, buf, (world.Rank()+1)%world.Size(), 0, mpi.AnySource, 0); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	for r := 1; r < world.Size(); r++ {
		for range 3 {
			var err error
			switch world.Rank() {
			case 0:
				err = mpi.Send(world, buf, r, 0)
			case r:
				_, err = mpi.Recv(world, buf, 0, 0)
			}
			if err != nil {
				return err
			}
		}
	}
	if os.Getenv(asRank) == "fail" && world.Rank() == 1 {
		return errors.New("rank 1 fails on purpose")
	}
	return nil
}

func TestRunProfile(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	job := func(how string, flags ...string) outcome {
		return muster(t, dir, append(append([]string{"run", "-n", "3", "--env", asRank + "=" + how}, flags...), self)...)
	}

	got := job("well", "--profile", "full")
	if got.status != 0 || got.out != "" {
		t.Fatalf("the job should end well and print nothing else: %+v", got)
	}
	// Memory, times and unexpected messages differ from run to run. Stalls appear only when
	// ranks had to wait for a core.
	text := regexp.MustCompile(`(?m)^time .*$`).ReplaceAllString(got.err, "time *")
	text = regexp.MustCompile(`(?m)^unexpected .*$`).ReplaceAllString(text, "unexpected *")
	text = regexp.MustCompile(`(?m)^stalls .*\n( .*\n)*`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`(?m)^waited .*\n( .*\n)*`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`(?m)^in MPI calls .*$`).ReplaceAllString(text, "in MPI calls *")
	before, _, _ := strings.Cut(text, "\ncall ")
	_, text, _ = strings.Cut(text, "\nmessages ")
	text, _, _ = strings.Cut(before+"\nmessages "+text, "\nmemory a rank")
	if want := `muster: profile: 3 ranks on 1 host over shm
time *
in MPI calls *

messages       6; a rank sent 0 to 6 (most: rank 0)
volume         600 B; a rank sent 0 B to 600 B (most: rank 0)
unexpected *

length               messages                       volume
64 B to <128 B              6   100 % ##########     600 B   100 % ##########

protocols      eager 100 % (100 % of the volume)
buffer reuse   83 % of the short messages (6) are from a buffer used before
               uses of the buffer used most: 0 to 6 (most: rank 0); its length: 0 B to 100 B (most: rank 0)
`; text != want {
		t.Errorf("the profile begins with\n%s\nwant\n%s", text, want)
	}
	if !regexp.MustCompile(`(?m)^Recv +6 .* run_profile_test.go:\d+ muster.chatter$`).MatchString(strings.ReplaceAll(got.err, "muster/run_", "run_")) {
		t.Errorf("the profile lacks the six receives of chatter:\n%s", got.err)
	}
	for _, part := range []string{"\n  total  ", "\nbusiest pairs  0>1 300 B, 0>2 300 B\n"} {
		if !strings.Contains(got.err, part) {
			t.Errorf("the profile lacks %q:\n%s", part, got.err)
		}
	}

	got = job("well", "--profile")
	if lines := strings.Count(got.err, "\n"); got.status != 0 || lines > 24 || !strings.Contains(got.err, "\nmessages       6; ") || !strings.Contains(got.err, "--profile full") {
		t.Errorf("one screen, here of %d lines: %+v", lines, got)
	}
	got = job("well", "--profile", "out.html")
	page, err := os.ReadFile(filepath.Join(dir, "out.html"))
	if got.status != 0 || err != nil || !strings.HasPrefix(got.err, "muster: the profile is in out.html") {
		t.Errorf("a page: %v, %+v", err, got)
	}
	for _, part := range []string{"<h2>Communication matrix</h2>", "from 0 to 2: ", "time since the end of Init", "muster.chatter", "rank 1 in calls: "} {
		if !strings.Contains(string(page), part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
	if strings.Contains(string(page), "src=") || strings.Contains(string(page), "href=") {
		t.Error("the page needs something else")
	}

	got = job("well", "--profile=out.json")
	if got.status != 0 || got.err != "muster: the profile is in out.json\n" {
		t.Errorf("with a file: %+v", got)
	}
	b, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := prof.Decode(b); err != nil || s.Ranks != 3 || s.Values[prof.MessagesReceived].Sum != 6 {
		t.Errorf("the file: %v\n%s", err, b)
	}

	if got := job("fail", "--profile"); got.status == 0 || !strings.Contains(got.err, "muster: no profile: the job has failed\n") || strings.Contains(got.err, "memory a rank") {
		t.Errorf("a failed job must report that there is no profile: %+v", got)
	}
	if got := muster(t, dir, "run", "-n", "2", "--profile", "true"); got.status != 0 || !strings.Contains(got.err, "no profile: rank 0 has written none") {
		t.Errorf("a program without Muster: %+v", got)
	}
	if got := muster(t, dir, "run", "--profile=out.txt", "true"); got.status != 2 || !strings.Contains(got.err, "ends in .json") {
		t.Errorf("a file of another kind: %+v", got)
	}
}

func TestRunProfileArrivals(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bench := []string{self, "bench", "allreduce", "--sizes", "8", "-i", "20", "--json"}
	table := regexp.MustCompile(`(?s)^muster: arrivals: 3 ranks on 1 host over shm\ncollectives    [0-9]+ calls at [0-9]+ call sites\n\ncall site .*\nbench/collective.go:[0-9]+ +Allreduce +30 +8 `)
	for _, flags := range [][]string{
		{"--profile", "arrivals", "-n", "3"}, // flags may follow
		{"-n", "3", "--profile=arrivals"},
	} {
		got := muster(t, dir, append(append([]string{"run"}, flags...), bench...)...)
		if got.status != 0 || !table.MatchString(got.err) || !strings.Contains(got.err, "as a picture: --profile=arrivals:FILE.svg") || !strings.Contains(got.out, `"bench":"allreduce"`) {
			t.Errorf("%q gave %+v", flags, got)
		}
	}

	got := muster(t, dir, append([]string{"run", "-n", "3", "--profile=arrivals:late.svg"}, bench...)...)
	svg, err := os.ReadFile(filepath.Join(dir, "late.svg"))
	if got.status != 0 || !strings.Contains(got.err, "muster: the picture is in late.svg\n") || err != nil || !strings.Contains(string(svg), "</svg>") {
		t.Errorf("with a picture: %+v, %v", got, err)
	}
	got = muster(t, dir, append([]string{"run", "-n", "3", "--profile", "arrivals:late.json"}, bench...)...)
	text, err := os.ReadFile(filepath.Join(dir, "late.json"))
	if err != nil || got.status != 0 || got.err != "muster: the profile is in late.json\n" {
		t.Errorf("with a file: %+v, %v", got, err)
	}
	if all, err := prof.DecodeArrivals(text); err != nil || all.Ranks != 3 || len(all.Sites()) < 2 {
		t.Errorf("the file: %v\n%s", err, text)
	}

	for _, refused := range []string{"--profile=arrivals:late.png", "--profile=arrivals:/nowhere/late.svg"} {
		if got := muster(t, dir, "run", refused, "true"); got.status != 2 || !strings.Contains(got.err, "name") {
			t.Errorf("%s gave %+v", refused, got)
		}
	}
	// Without a further argument, arrivals is the program.
	if got := muster(t, dir, "run", "--profile", "arrivals"); got.status != 2 || !strings.Contains(got.err, "no program given") {
		t.Errorf("a program called arrivals gave %+v", got)
	}
}
