package lab

// The names of labs: taking one, and finding what bears it. All namespaces of a
// lab begin with its name, so the list of namespaces is the list of labs:
//
//	muster-lab-switch  muster-lab-h1  …   a lab with a name, here "lab"
//	muster4711a-switch muster4711a-h1 …   the first lab of process 4711

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	namePattern  = regexp.MustCompile("^[a-z][a-z0-9]{0,15}$")
	namedPattern = regexp.MustCompile("^" + defaultPrefix + "-([a-z][a-z0-9]*)-(switch|h[0-9]+)$")
)

func checkName(name string) error {
	if name != "" && !namePattern.MatchString(name) {
		return fmt.Errorf("lab: name %q: use a small letter, then small letters and digits, at most 16", name)
	}
	return nil
}

// claimName makes the namespace of the switch, which nobody else can then make.
// A process can have several labs; they differ in a letter.
func (l *Lab) claimName() error {
	if l.cfg.Name != "" {
		l.name = l.cfg.Prefix + "-" + l.cfg.Name
		err := command("", "ip", "netns", "add", l.switchName())
		if err != nil && strings.Contains(err.Error(), "File exists") {
			return fmt.Errorf("lab: a lab with the name %q is up already: remove it (muster lab down --name %s) or choose another name", l.cfg.Name, l.cfg.Name)
		}
		return err
	}
	var err error
	for letter := 'a'; letter <= 'z'; letter++ {
		l.name = l.cfg.Prefix + strconv.Itoa(os.Getpid()) + string(letter)
		if err = command("", "ip", "netns", "add", l.switchName()); err == nil {
			return nil
		}
		if !strings.Contains(err.Error(), "File exists") {
			break
		}
	}
	return err
}

func (l *Lab) switchName() string { return l.name + "-switch" }

func (l *Lab) nameHosts() {
	for h := range l.cfg.Hosts {
		l.hosts = append(l.hosts, l.name+"-h"+strconv.Itoa(h+1))
	}
}

// Names are the names of the labs that are up and have one. Labs that were not
// finished are among them.
func Names() []string {
	var names []string
	for _, namespace := range allNamespaces() {
		if match := namedPattern.FindStringSubmatch(namespace); match != nil {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Find gives the lab with a name, which another process has made.
func Find(name string) (*Lab, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if !slices.Contains(Names(), name) {
		if up := Names(); len(up) > 0 {
			return nil, fmt.Errorf("lab: there is no lab %q; those that are up: %s", name, strings.Join(up, ", "))
		}
		return nil, fmt.Errorf("lab: there is no lab %q; make it with: muster lab up --name %s", name, name)
	}
	l := &Lab{cfg: Config{Name: name, Prefix: defaultPrefix}, name: defaultPrefix + "-" + name}
	links, err := l.switchLinks()
	if err != nil {
		return nil, fmt.Errorf("%w (muster lab down --name %s removes the lab)", err, name)
	}
	for l.cfg.Rails < maxRails && slices.ContainsFunc(links, func(k link) bool { return k.Name == bridge(l.cfg.Rails) }) {
		l.cfg.Rails++
	}
	for exists(l.name + "-h" + strconv.Itoa(l.cfg.Hosts+1)) {
		l.cfg.Hosts++
	}
	whole := slices.IndexFunc(links, func(k link) bool { return k.Alias == finished })
	if whole < 0 || l.cfg.Hosts == 0 {
		return nil, fmt.Errorf("lab: lab %q is not finished: wait for the command that makes it, or remove what it has left with: muster lab down --name %s", name, name)
	}
	l.cfg.MTU = links[whole].MTU
	l.nameHosts()
	return l, nil
}

// Remove takes down the lab with a name, whether it was finished or not.
func Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if !slices.Contains(Names(), name) {
		_, err := Find(name) // it says what there is
		return err
	}
	return removeLab(defaultPrefix + "-" + name)
}

// short is the name of a host within its lab: h2.
func (l *Lab) short(host string) string { return strings.TrimPrefix(host, l.name+"-") }

// Host finds a host by a word that people type: h2, or its whole name.
func (l *Lab) Host(word string) (string, error) {
	for _, host := range l.hosts {
		if word == host || word == l.short(host) {
			return host, nil
		}
	}
	return "", fmt.Errorf("lab: there is no host %q: lab %q has h1 to h%d", word, l.cfg.Name, len(l.hosts))
}

// link is what ip tells about an interface.
type link struct {
	Name   string   `json:"ifname"`
	Alias  string   `json:"ifalias"`
	Master string   `json:"master"`
	MTU    int      `json:"mtu"`
	Flags  []string `json:"flags"`
}

// switchLinks are the bridges and ports in the namespace of the switch.
func (l *Lab) switchLinks() (links []link, err error) {
	answer, err := query("", "ip", "-json", "-n", l.switchName(), "link", "show")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, &links); err != nil {
		return nil, fmt.Errorf("lab: what ip tells about %s: %w", l.switchName(), err)
	}
	return links, nil
}
