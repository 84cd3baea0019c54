package lab

// The names of labs: reserving a name, and finding a lab by its name. The names of all
// namespaces of a lab start with its name, so the list of namespaces is the list of labs:
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

// claimName reserves the name by creating the namespace of the switch. A process can have
// several labs, which differ in a letter.
func (l *Lab) claimName() error {
	if l.cfg.Name != "" {
		l.name = l.cfg.Prefix + "-" + l.cfg.Name
		err := command("", "ip", "netns", "add", l.switchName())
		if err != nil && strings.Contains(err.Error(), "File exists") {
			return fmt.Errorf("lab: a lab with the name %q is up already: remove it (muster lab down --name %s) or use another name", l.cfg.Name, l.cfg.Name)
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

// Names returns the names of all named labs, including incomplete ones.
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

// Find returns a named lab that another process has created.
func Find(name string) (*Lab, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if !slices.Contains(Names(), name) {
		if up := Names(); len(up) > 0 {
			return nil, fmt.Errorf("lab: there is no lab %q; existing labs: %s", name, strings.Join(up, ", "))
		}
		return nil, fmt.Errorf("lab: there is no lab %q; create it with: muster lab up --name %s", name, name)
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
		return nil, fmt.Errorf("lab: lab %q is incomplete: wait for the command that creates it, or remove it with: muster lab down --name %s", name, name)
	}
	l.cfg.MTU = links[whole].MTU
	l.nameHosts()
	return l, nil
}

// Remove removes a named lab, complete or not.
func Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if !slices.Contains(Names(), name) {
		_, err := Find(name) // its error lists the existing labs
		return err
	}
	return removeLab(defaultPrefix + "-" + name)
}

// short returns the name of a host within its lab, such as h2.
func (l *Lab) short(host string) string { return strings.TrimPrefix(host, l.name+"-") }

// Host returns a host by its short name, such as h2, or its full name.
func (l *Lab) Host(word string) (string, error) {
	for _, host := range l.hosts {
		if word == host || word == l.short(host) {
			return host, nil
		}
	}
	return "", fmt.Errorf("lab: there is no host %q: lab %q has h1 to h%d", word, l.cfg.Name, len(l.hosts))
}

// link is an interface as reported by ip.
type link struct {
	Name   string   `json:"ifname"`
	Alias  string   `json:"ifalias"`
	Master string   `json:"master"`
	MTU    int      `json:"mtu"`
	Flags  []string `json:"flags"`
}

// switchLinks returns the bridges and ports in the namespace of the switch.
func (l *Lab) switchLinks() (links []link, err error) {
	answer, err := query("", "ip", "-json", "-n", l.switchName(), "link", "show")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, &links); err != nil {
		return nil, fmt.Errorf("lab: decode the output of ip for %s: %w", l.switchName(), err)
	}
	return links, nil
}
