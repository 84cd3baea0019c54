package main

// The settings file of muster run --settings, which muster tune --from writes.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/mpi"
)

// settingsFile is what the file holds.
type settingsFile struct {
	About string `json:"about,omitempty"`
	// MapBy is the value of --map-by. A trace in it is relative to the folder of the file.
	MapBy string `json:"map_by,omitempty"`
	// Settings are the values of environment variables.
	Settings map[string]string `json:"settings"`
	// Measured has what each entry brought when the file was written.
	Measured []settingMeasured `json:"measured,omitempty"`
}

// settingMeasured is the time of the program with an entry as a share of that without, as median
// and range of the rounds.
type settingMeasured struct {
	Entry  string  `json:"entry"`
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	Rounds int     `json:"rounds"`
}

// readSettings reads and checks a settings file.
func readSettings(name string) (*settingsFile, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &settingsFile{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("%s: %w; muster tune --from writes such a file", name, err)
	}
	if _, err := mpi.ConfigFromEnv(f.environ()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for variable := range f.Settings {
		if !strings.HasPrefix(variable, "MUSTER_") { // ConfigFromEnv ignores others
			return nil, fmt.Errorf("%s: %s is not a setting; muster info lists them", name, variable)
		}
	}
	if file, ok := strings.CutPrefix(f.MapBy, trafficWord); ok && !filepath.IsAbs(file) {
		f.MapBy = trafficWord + filepath.Join(filepath.Dir(name), file)
	}
	return f, nil
}

// environ returns the settings as an environment, in order.
func (f *settingsFile) environ() (env []string) {
	for variable, value := range f.Settings {
		env = append(env, variable+"="+value)
	}
	slices.Sort(env)
	return env
}

// applySettings adds the settings of a file to a job. Variables of the environment and flags, which
// are more specific, have precedence.
func (f *runFlags) applySettings(mapByGiven bool, cfg *launch.Config) error {
	if f.settings == "" {
		return nil
	}
	file, err := readSettings(f.settings)
	if err != nil {
		return fmt.Errorf("--settings: %w", err)
	}
	var env []string
	for _, kv := range file.environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(cfg.Env, func(set string) bool { return strings.HasPrefix(set, name+"=") }) {
			env = append(env, kv)
		}
	}
	cfg.ExtraEnv = append(env, cfg.ExtraEnv...)
	if file.MapBy != "" && !mapByGiven {
		f.mapping.mapBy = file.MapBy
	}
	return nil
}
