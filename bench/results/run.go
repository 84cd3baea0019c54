package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Run is what one command measured on one machine: a JSON file, named after the time when the
// command was started.
type Run struct {
	Date    string   `json:"date"`   // UTC
	Commit  string   `json:"commit"` // with "+dirty" if tracked files differed from it
	Machine string   `json:"machine"`
	Command string   `json:"command"`
	Rounds  int      `json:"rounds"`
	Tables  []*Table `json:"tables"`
	file    string   // "" until it is written
}

// NewRun describes this moment and this machine.
func NewRun(commit, command string, rounds int) *Run {
	return &Run{Date: time.Now().UTC().Format(dateFormat), Commit: commit, Machine: machine(), Command: command, Rounds: rounds}
}

// Add adds a table, which command measured by itself with these versions of others' libraries,
// and writes the run into a folder: an interrupted run has what it has measured.
func (r *Run) Add(folder string, t *Table, command string, libraries []string) error {
	t.Stamp = Stamp{Date: time.Now().UTC().Format(dateFormat), Versions: versions(r.Commit, libraries), Command: command}
	r.Tables = append(r.Tables, t)
	if err := r.complete(); err != nil {
		return err
	}
	text, err := r.encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if r.file == "" {
		if r.file, err = newFile(folder, r.Date); err != nil {
			return err
		}
	}
	if err := os.WriteFile(r.file+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(r.file+".new", r.file)
}

// newFile returns the file of a run that was started at a time, or in the first second after it
// of which there is none.
func newFile(folder, date string) (string, error) {
	at, err := time.Parse(dateFormat, date)
	for ; err == nil; at = at.Add(time.Second) {
		file := filepath.Join(folder, at.Format("2006-01-02-150405")+".json")
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return file, nil
		}
	}
	return "", err
}

// brokenList is a list of strings with one on each line.
var brokenList = regexp.MustCompile(`\[\n\s*"(?:[^"\\]|\\.)*"(?:,\n\s*"(?:[^"\\]|\\.)*")*\n\s*\]`)

// encode returns the contents of the file, with a line for each row of a table.
func (r *Run) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return brokenList.ReplaceAllFunc(b.Bytes(), func(list []byte) []byte {
		var cells []string
		if json.Unmarshal(list, &cells) != nil {
			return list
		}
		lines := strings.Split(string(list), "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return []byte("[" + strings.Join(lines[1:len(lines)-1], " ") + "]")
	}), nil
}

// complete checks the run and gives its tables what they have in common.
func (r *Run) complete() error {
	for _, t := range r.Tables {
		t.Stamp.Commit, t.Stamp.Machine = r.Commit, r.Machine
		if err := t.check(); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return nil
}

// readRun reads a file. It is an error if it has no tables, or one is incomplete.
func readRun(file string) (*Run, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Run{file: file}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(r.Tables) == 0 {
		return nil, fmt.Errorf("%s has no tables", file)
	}
	if err := r.complete(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// readRuns reads all runs of a folder, the oldest first. A folder that does not exist has none.
func readRuns(folder string) (runs []*Run, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, file := range files {
		r, err := readRun(file)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// newest returns each table as it was measured last, by name.
func newest(runs []*Run) map[string]*Table {
	tables := map[string]*Table{}
	for _, r := range runs {
		for _, t := range r.Tables {
			if old := tables[t.Name]; old == nil || t.Stamp.Date >= old.Stamp.Date {
				tables[t.Name] = t
			}
		}
	}
	return tables
}

// Load returns each table of the runs in a folder as it was measured last, by name.
func Load(folder string) (map[string]*Table, error) {
	runs, err := readRuns(folder)
	if err != nil {
		return nil, err
	}
	return newest(runs), nil
}

// removeSuperseded removes the runs all of whose tables were measured again.
func removeSuperseded(folder string) error {
	runs, err := readRuns(folder)
	if err != nil {
		return err
	}
	tables := newest(runs)
	for _, r := range runs {
		if slices.ContainsFunc(r.Tables, func(t *Table) bool { return tables[t.Name] == t }) {
			continue
		}
		if err := os.Remove(r.file); err != nil {
			return err
		}
	}
	return nil
}
