package settings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/settings"
)

type config struct {
	Mode  string        `env:"T_MODE" default:"fast" choices:"fast,slow,off"`
	Limit time.Duration `env:"T_LIMIT" default:"60s"`
	Often time.Duration `env:"T_OFTEN" default:"never" range:"10ms.."`
	Quiet bool          `env:"T_QUIET" default:"off"`
	Hook  func()
	More  struct {
		Count int    `env:"T_COUNT" default:"7" range:"2..9"`
		Cache int64  `env:"T_CACHE" default:"64K" range:".."`
		Spin  int    `env:"T_SPIN" default:"1000, or 2 when ranks share cores"`
		File  string `env:"T_FILE" default:"none"`
	}
}

var checks = map[string]func(string) error{"T_FILE": settings.OneOf("a.json", "b.json")}

func TestReadAndCheck(t *testing.T) {
	for _, c := range []struct{ env, want string }{ // want: parts of the error; "": none
		{"T_MODE=slow", ""},
		{"T_MODE=slo", `config.Mode (T_MODE) is "slo"; want fast, slow or off; did you mean slow?`},
		{"T_MODE=never", `want fast, slow or off`},
		{"T_LIMIT=90s", ""},
		{"T_LIMIT=5", "environment: T_LIMIT=5: want a duration such as 90s"},
		{"T_LIMIT=-5s", "config.Limit (T_LIMIT) is -5s; want more than 0, or 0 for the default: 60s"},
		{"T_OFTEN=0s", ""},
		{"T_OFTEN=9ms", "config.Often (T_OFTEN) is 9ms; want at least 10ms, or 0 for the default: never"},
		{"T_QUIET=on", ""},
		{"T_QUIET=true", ""},
		{"T_QUIET=perhaps", "want on or off, or 1 or 0"},
		{"T_COUNT=9", ""},
		{"T_COUNT=1", "config.More.Count (T_COUNT) is 1; want 2 to 9, or 0 for the default: 7"},
		{"T_COUNT=10", "want 2 to 9"},
		{"T_COUNT=many", "want a whole number, or a size such as 64K"},
		{"T_CACHE=-1", ""},
		{"T_SPIN=-1", "want more than 0, or 0 for the default: 1000, or 2 when ranks share cores"},
		{"T_FILE=a.json", ""},
		{"T_FILE=c", `config.More.File (T_FILE) is "c"; want a.json or b.json`},
		{"T_RANK=1", ""},
		{"T_MODES=fast", "there is no setting T_MODES; did you mean T_MODE?"},
		{"T_SOMETHING_ELSE=1", "there is no setting T_SOMETHING_ELSE; the settings are"},
		{"PATH=/bin", ""},
	} {
		cfg := &config{}
		err := settings.Read(cfg, []string{c.env}, "T_", []string{"T_RANK"})
		if err == nil {
			err = settings.Check(cfg, checks)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got error %v, want %q", c.env, err, c.want)
		}
	}
}

func TestSetDefaults(t *testing.T) {
	cfg := &config{}
	cfg.More.Count = 3
	settings.SetDefaults(cfg)
	if cfg.Limit != time.Minute || cfg.More.Count != 3 || cfg.More.Cache != 64<<10 || cfg.More.Spin != 0 || cfg.Often != 0 || cfg.Mode != "" {
		t.Errorf("got %+v; want the defaults of numbers, and what is set", *cfg)
	}
	if err := settings.Check(cfg, checks); err != nil {
		t.Errorf("the defaults are not allowed: %v", err)
	}
}

func TestDescription(t *testing.T) {
	cfg := &config{Quiet: true, Limit: time.Second}
	for _, f := range settings.Fields(cfg) {
		want := map[string][2]string{
			"T_MODE": {"fast, slow or off", ""}, "T_LIMIT": {"more than 0", "1s"}, "T_OFTEN": {"at least 10ms", "0s"}, "T_QUIET": {"on or off", "on"},
			"T_COUNT": {"2 to 9", "0"}, "T_CACHE": {"any number", "0"}, "T_SPIN": {"more than 0", "0"}, "T_FILE": {"", ""},
		}[f.Env()]
		if got := [2]string{f.AllowedValues(), f.Text()}; got != want {
			t.Errorf("%s is described as %q, want %q", f.Path, got, want)
		}
	}
}
